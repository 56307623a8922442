"""The loop stays responsive while the raw topics of many tables are opened: acknowledgements, room in cdc_raw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.publisher.publisher_beside_fakes import FakeKafka, PublisherBesideFakes
from tests.support.publisher.schema_rows import SchemaRows

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_loop_is_served_between_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, kafka = SchemaRows(), FakeKafka()
    it = PublisherBesideFakes(tmp_path, rows, kafka)
    it.open()
    for number in range(3):
        rows.create("ks", f"t{number}", cdc=True)
    beats: list[int] = []
    monkeypatch.setattr(it.publisher._housekeeping, "_beat", lambda: beats.append(len(kafka.topics)))
    it.publisher._do(it.publisher._tables.read_schema())
    assert len(kafka.topics) == 3
    assert {1, 2, 3} <= set(beats)
