"""Messages that retention deletes before they are read stop their share, or are counted if the settings accept that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from archive.events.verify import LedgerCheck
from archive.fault_points import ArchivePoint
from cdc_common.errors.codes import CdcError, Code
from stream_runtime import fault_points
from stream_runtime.fault_points import Fault, InjectedFaultError
from tests.support.archive.scene import Archive, Topic, rows_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def topic() -> Topic:
    made = Topic(2)
    for number in range(8):
        made.send_change(number % 2, number)
    return made


def check_ledger(archive: Archive) -> None:
    assert LedgerCheck(archive.store, read_rows=True).check(archive.events()).problems == []


def test_a_gap_between_two_cuts(topic: Topic, tmp_path: Path) -> None:
    archive = Archive(topic, tmp_path, lost="accept")
    archive.cut(rows=1)
    archive.run()
    for number in range(8, 16):
        topic.send_change(number % 2, number)
    topic.delete_before(1, 6)
    archive.run()
    assert [one for (one,) in rows_of(archive, "after.id")] == [0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 13, 15]
    _, second = archive.events()
    assert [(one.start, one.end, one.rows, one.lost) for one in second.ranges] == [(4, 8, 4, 0), (4, 8, 2, 2)]
    check_ledger(archive)
    topic.send_change(0, 16)
    archive.run()
    assert [one.lost for one in archive.events()[2].ranges] == [0, 0]
    check_ledger(archive)


@pytest.mark.parametrize("point", [ArchivePoint.INTENT_STORED, ArchivePoint.ALL_FILES_STORED])
@pytest.mark.parametrize("first", [2, 4, 5])
def test_messages_of_an_open_cut(topic: Topic, tmp_path: Path, point: ArchivePoint, first: int) -> None:
    archive = Archive(topic, tmp_path)
    archive.cut(rows=1)
    fault_points.reached.clear()
    fault_points.armed = Fault(point, 1, "raise")
    with pytest.raises(InjectedFaultError):
        archive.run()
    fault_points.armed = None
    topic.send_change(1, 8)
    topic.send_change(1, 9)
    topic.delete_before(1, first)
    if point is ArchivePoint.INTENT_STORED:
        with pytest.raises(CdcError, match="lost=accept") as raised:
            archive.run()
        assert raised.value.code is Code.ARCHIVE_INTENT
    accepting = Archive(topic, tmp_path, lost="accept")
    accepting.cut(rows=1)
    accepting.run()
    check_ledger(accepting)
    rows = [one for (one,) in rows_of(accepting, "after.id")]
    are_stored = point is ArchivePoint.ALL_FILES_STORED
    old = [number for number in (1, 3, 5, 7) if are_stored or number // 2 >= first]
    new = [number for number, offset in ((8, 4), (9, 5)) if offset >= first]
    assert rows == [0, 2, 4, 6, *old, *new]
    events = accepting.events()
    assert events[0].missing == 4 - len(old)
    assert sum(one.lost for event in events for one in event.ranges) == max(first - 4, 0)
