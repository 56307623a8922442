"""The loop stays responsive while the raw topics of many tables are opened: acknowledgements, room in cdc_raw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
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


def test_a_restart_checks_all_raw_topics_at_once(tmp_path: Path) -> None:
    """A topic with wrong settings is named by a check of its own; a deleted one is created again."""
    rows, kafka = SchemaRows(), FakeKafka()
    for number in range(50):
        rows.create("ks", f"t{number}", cdc=True)
    it = PublisherBesideFakes(tmp_path, rows, kafka)
    it.open()
    assert len(kafka.ensured) == 50
    kafka.ensured.clear()
    error = CdcError(Code.TOPIC_SETTINGS, "It is compacted.", "Alter it.")
    kafka.altered["cdc.raw.ks.t1"] = kafka.unusable["cdc.raw.ks.t1"] = error
    del kafka.topics["cdc.raw.ks.t2"]
    rows.create("ks", "new", cdc=True)
    it.restart()
    it.open()
    assert sorted(kafka.ensured) == ["cdc.raw.ks.new", "cdc.raw.ks.t1", "cdc.raw.ks.t2"]
    assert it.waits() == {"ks.t1": "CDC-022"}
    it.write("t0", 1)
    it.write("t49", 1)
    it.run(lambda: it.is_sent("t0") and it.is_sent("t49"))
