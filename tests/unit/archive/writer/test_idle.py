"""A partition without messages: markers of transactions move its offsets, and an event without files commits them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.events.verify import LedgerCheck
from stream_runtime.records import SourcePartition
from tests.support.archive.scene import TOPIC, Archive, Topic

if TYPE_CHECKING:
    from pathlib import Path

QUIET = SourcePartition(TOPIC, 1)


def test_a_quiet_partition_gets_an_event_without_files(tmp_path: Path) -> None:
    topic = Topic(2)
    topic.send_change(0, 0)
    archive = Archive(topic, tmp_path)
    archive.cut(rows=1)
    archive.run()
    topic.ends[1] += 5
    archive.run()
    assert len(archive.events()) == 1
    archive.settings = archive.settings._replace(idle_seconds=-1)  # each moment is later than that
    archive.run()
    _, second = archive.events()
    assert second.files == ()
    assert [(one.partition, one.start, one.end) for one in second.ranges] == [(0, 1, 1), (1, 0, 5)]
    assert archive.open().offsets[QUIET] == 5
    archive.run()
    assert len(archive.events()) == 2
    assert LedgerCheck(archive.store, read_rows=True).check(archive.events()).problems == []
