"""A task that fails at each point of the protocol, and its successors: each message is in one committed file event."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import duckdb
import pytest

from archive.events.verify import LedgerCheck
from archive.fault_points import ArchivePoint
from archive.records import ShareName
from archive.writer import share_task
from archive.writer.intent import Intent, read_intent
from stream_runtime import fault_points
from stream_runtime.fault_points import Fault, InjectedFaultError
from tests.support.archive.scene import TOPIC, Archive, Topic
from tests.support.stream_runtime.sqlite_commits import FencedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MESSAGES = 90
ONLY_IN_THE_JOB = {ArchivePoint.SHARE_OPENING, ArchivePoint.CUT_OFFSETS_SENT}
POINTS = [point for point in ArchivePoint if point not in ONLY_IN_THE_JOB]


@pytest.fixture(autouse=True)
def _unarmed() -> Iterator[None]:
    fault_points.reached.clear()
    yield
    fault_points.armed = None
    fault_points.reached.clear()


@pytest.fixture
def topic() -> Topic:
    made = Topic(partitions=3)
    for number in range(MESSAGES):
        made.send_change(number % 3, number, hours=number % 2)
    return made


def small(topic: Topic, folder: Path) -> Archive:
    """An archive with many cuts, files and runs."""
    archive = Archive(topic, folder)
    archive.cut(rows=30)
    archive.chunk = 7
    archive.spill_bytes = 500
    return archive


def check_all(archive: Archive, *, end: bool = True) -> None:
    """The ledger fits the files, and no file has a row that another one has, whoever made it."""
    events = archive.events()
    found = LedgerCheck(archive.store, read_rows=True).check(events)
    assert found.problems == []
    named = {file.planned.path for event in events for file in event.files}
    assert set(archive.paths()) == named, "a reader of the folder sees rows that no event names"
    query = "SELECT _kafka_partition, _kafka_offset, after.id, _row_sequence FROM read_parquet($1)"
    rows = duckdb.connect().execute(query, [f"{archive.folder}/lake/**/*.parquet"]).fetchall()
    assert len(set(rows)) == len(rows)
    ends = {one.partition: one.end for one in events[-1].ranges}
    wanted = {(number % 3, number // 3, number, number) for number in range(MESSAGES) if number // 3 < ends[number % 3]}
    assert set(rows) == wanted
    if end:
        assert len(rows) > MESSAGES - 40


@pytest.mark.parametrize("nth", [1, 2, 7])
@pytest.mark.parametrize("point", POINTS)
def test_a_task_that_fails_at_a_point(topic: Topic, tmp_path: Path, point: ArchivePoint, nth: int) -> None:
    archive = small(topic, tmp_path)
    fault_points.armed = Fault(point, nth, "raise")
    try:
        archive.run()
    except InjectedFaultError:
        assert point is not None
    else:
        assert fault_points.reached[point] < nth
        if point is ArchivePoint.INTENT_READ or nth > 1:  # not reached so often without a crash
            check_all(archive)
            return
        pytest.fail(f"{point} was not reached")
    fault_points.armed = None
    archive.run()
    check_all(archive)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("first", [ArchivePoint.INTENT_STORED, ArchivePoint.FILE_STORED])
def test_two_tasks_that_fail(topic: Topic, tmp_path: Path, first: ArchivePoint, point: ArchivePoint) -> None:
    """The second one finishes the cut of the first, fails, and a third one finishes it."""
    archive = small(topic, tmp_path)
    for fault in (Fault(first, 1, "raise"), Fault(point, 1, "raise")):
        fault_points.armed = fault
        fault_points.reached.clear()
        try:
            archive.run()
        except InjectedFaultError:
            continue
        assert point is ArchivePoint.FIRST_OFFSETS_COMMITTED
    fault_points.armed = None
    archive.run()
    check_all(archive)


def zombie_at(archive: Archive, point: ArchivePoint, monkeypatch: pytest.MonkeyPatch, then: Callable[[], None]) -> None:
    """Run a task that, at a point, hangs while `then` happens, and then continues."""
    is_done: list[bool] = []

    def reach(reached: ArchivePoint) -> None:
        if reached is point and not is_done:
            is_done.append(True)
            then()

    monkeypatch.setattr(share_task, "reach", reach)
    archive.run()
    assert is_done


@pytest.mark.parametrize(
    "point", [one for one in POINTS if one not in {ArchivePoint.INTENT_READ, ArchivePoint.IN_STORE}]
)
def test_two_tasks_that_believe_in_the_share(
    topic: Topic, tmp_path: Path, point: ArchivePoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task hangs at a point while another one archives with other cuts; then it wakes up."""
    archive = small(topic, tmp_path)
    other = small(topic, tmp_path)
    other.cut(rows=20)
    other.chunk = 5
    with suppress(FencedError):  # or it finds the other one's intent, and begins again
        zombie_at(archive, point, monkeypatch, other.run)
    check_all(archive, end=False)
    archive.run()
    check_all(archive)


def test_an_intent_is_finished_with_its_own_definition(topic: Topic, tmp_path: Path) -> None:
    archive = small(topic, tmp_path)
    fault_points.armed = Fault(ArchivePoint.FILE_STORED, 1, "raise")
    with pytest.raises(InjectedFaultError):
        archive.run()
    fault_points.armed = None
    changed = Archive(topic, tmp_path, layout="hive", bucket="day", tombstones="keep")
    changed.cut(rows=30)
    changed.run()
    first, second = changed.events()[:2]
    assert (first.layout, first.bucket, len(first.files)) == ("iceberg", "hour", 2)
    assert (second.layout, second.bucket, len(second.files)) == ("hive", "day", 1)
    check_all(changed, end=False)


def test_a_stored_file_is_never_made_again(topic: Topic, tmp_path: Path) -> None:
    archive = small(topic, tmp_path)
    fault_points.armed = Fault(ArchivePoint.FILE_STORED, 2, "raise")
    with pytest.raises(InjectedFaultError):
        archive.run()
    fault_points.armed = None
    before = {path: (archive.folder / "lake" / path).stat().st_ino for path in archive.paths()}
    assert len(before) == 2
    archive.run()
    assert {path: (archive.folder / "lake" / path).stat().st_ino for path in before} == before


def test_a_recreated_intent_is_not_needed(topic: Topic, tmp_path: Path) -> None:
    """An intent is what JSON says it is."""
    archive = small(topic, tmp_path)
    archive.run()
    [event, *_] = archive.events()
    stored = read_intent(archive.store, ShareName(TOPIC, "topic-id", archive.share.id), event.cut)
    assert stored is not None
    assert Intent.from_json(stored.as_json()) == stored
    assert {file.path for file in stored.files} == {file.planned.path for file in event.files}
