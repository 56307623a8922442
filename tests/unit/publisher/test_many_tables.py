"""The loop goes round while the channels of many tables are opened: acknowledgements are taken, cdc_raw is guarded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from publisher.schema import PublishedTable
from tests.servers.publisher.test_start_without_kafka import Beside
from tests.support.materializer.raw_builder import TABLE, WRITER

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


class Channels:
    """publisher.raw_topics.Channels, of which none is open yet."""

    def __init__(self) -> None:
        self.asked: list[PublishedTable] = []

    def opened(self, _table: PublishedTable) -> None:
        return

    def get(self, table: PublishedTable) -> None:
        self.asked.append(table)


def test_the_loop_goes_round_between_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher, channels = Beside(tmp_path).publisher, Channels()
    tables = [PublishedTable(TABLE, bytes([number] * 16), WRITER.digest) for number in range(3)]
    beats: list[int] = []
    monkeypatch.setattr(publisher, "_channels", channels)
    monkeypatch.setattr(publisher, "_beat", lambda: beats.append(len(channels.asked)))
    monkeypatch.setattr(publisher._schema, "current", lambda: tables)
    publisher.follow_schema()
    assert channels.asked == tables
    assert beats == [1, 2, 3]
