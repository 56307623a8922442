"""A segment that disappears before it is published marks every table as needing a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.publisher.publisher_without_kafka import FIRST, PublisherWithoutKafka
from tests.support.publisher.schema_rows import SchemaRows

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_all_published_tables_are_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = SchemaRows()
    for name, cdc in {"a": True, "b": True, "c": False}.items():
        tables.create("ks", name, cdc=cdc)
    started = PublisherWithoutKafka(tmp_path, tables)
    publisher, schema = started.publisher, started.publisher._node.schema
    schema.refresh()
    publisher._poll_segments()
    assert schema.names_needing_snapshot() == []
    for file in started.cdc_raw.glob(f"*{FIRST}*"):
        file.unlink()
    publisher._poll_segments()
    assert schema.names_needing_snapshot() == ["ks.a", "ks.b"]
    assert started.status.collect(0.0)
    assert started.status.newest().need_snapshot == ("ks.a", "ks.b")
    printed = capsys.readouterr().out
    assert printed.count("CDC-069") == 1
    assert str(FIRST) in printed
