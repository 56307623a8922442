"""The loop stays responsive while the raw topics of many tables are opened: acknowledgements, room in cdc_raw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from publisher.schema import PublishedTable
from tests.support.materializer.raw_builder import TABLE, WRITER
from tests.support.publisher.publisher_without_kafka import PublisherWithoutKafka

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


class RawTopics:
    """publisher.raw_topics.RawTopics, with no topic open yet."""

    def __init__(self) -> None:
        self.asked: list[PublishedTable] = []

    def find_open(self, _table: PublishedTable) -> None:
        return

    def open(self, table: PublishedTable) -> None:
        self.asked.append(table)

    def send_mark(self, table: PublishedTable) -> None:
        """None of the tables needs a snapshot."""
        assert not table.needs_snapshot_since


def test_the_loop_is_served_between_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher, raw_topics = PublisherWithoutKafka(tmp_path).publisher, RawTopics()
    tables = [PublishedTable(TABLE, bytes([number] * 16), WRITER.digest) for number in range(3)]
    beats: list[int] = []
    monkeypatch.setattr(publisher._tables, "_raw_topics", raw_topics)
    monkeypatch.setattr(publisher._housekeeping, "_beat", lambda: beats.append(len(raw_topics.asked)))
    monkeypatch.setattr(publisher._node.schema, "current_tables", lambda: tables)
    publisher._tables.follow_schema()
    assert raw_topics.asked == tables
    assert beats == [1, 2, 3]
