"""A task that splits a wide Cassandra partition's deletion into parts publishes it once, whichever part it dies in.

The state is on disk, the checkpoint location is real; the broker is a list of what was committed, with its position.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.rows.deletion import DeletionTime
from cdc_common.errors.codes import CdcError
from materializer.fold.chunk import fold_chunk
from materializer.processing.raw_processor import RawProcessor
from stream_runtime import fault_points
from stream_runtime.fault_points import Fault, FaultPoint, InjectedFaultError
from stream_runtime.records import Message, TopicShape
from stream_runtime.state.checkpoints import CheckpointStore
from stream_runtime.state.object_store import ObjectStore
from stream_runtime.state.versions import NOTHING, next_version
from tests.support.materializer.brute_model import Write
from tests.support.materializer.fold_checks import record
from tests.support.materializer.memory_broker import PARTITION, MemoryBroker
from tests.support.materializer.memory_task import POINTS, TASK, open_task
from tests.support.materializer.raw_builder import catalog_of, int_bytes
from tests.support.materializer.table_writes import BASE_S, BASE_US, FORWARD
from tests.support.materializer.wide_partition import KEY, ROWS, bounded, insert, static

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from materializer.fold.result import ChunkResult
    from materializer.records import RawRecord
    from stream_runtime.state.reader import StateReader

MOST = 4


class CuttingProcessor(RawProcessor):
    """The table's own fold, in parts of at most MOST changes."""

    shape = TopicShape(1, "")

    def fold(self, state: StateReader, records: Sequence[RawRecord]) -> ChunkResult:
        return fold_chunk(state, records, catalog_of(FORWARD.table), bounded(MOST))

    def change_messages(self, result: ChunkResult) -> Iterator[Message]:
        for change in result.changes:
            yield Message("changes", 0, repr(change.clustering).encode(), repr(change).encode())


def records() -> list[RawRecord]:
    """A wide partition is filled, changed and deleted; another one is written to."""
    writes = [static(b"s", BASE_US), *(insert(c) for c in range(ROWS)), static(b"t", BASE_US + 1)]
    writes.append(Write(KEY, "partition_deletion", DeletionTime(BASE_US + 2, BASE_S)))
    writes.append(insert(1)._replace(partition_key=int_bytes(9)))
    return [record(FORWARD, write, BASE_S, offset) for offset, write in enumerate(writes)]


def run(broker: MemoryBroker, folder: Path) -> None:
    """One attempt of a task over the whole raw partition."""
    task = open_task(broker, folder)
    try:
        task.process(iter(records()), CuttingProcessor())
    finally:
        task.close()


def run_until_done(folder: Path, fault: Fault | None, patch: pytest.MonkeyPatch) -> tuple[MemoryBroker, int]:
    """Return the broker in the end, and how often the fault was met."""
    broker = MemoryBroker()
    patch.setattr(fault_points, "armed", fault)
    patch.setattr(fault_points, "reached", Counter())
    try:
        run(broker, folder)
    except InjectedFaultError:
        run(broker, folder)
        return broker, 1
    return broker, 0


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name.lower())
def test_a_task_that_dies_in_any_part_publishes_everything_once(
    point: FaultPoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _ = run_until_done(tmp_path / "whole", None, monkeypatch)
    assert expected.position is not None
    assert len(expected.messages) > 3 * ROWS
    nth, met = 0, 1
    while met:
        nth += 1
        broker, met = run_until_done(tmp_path / str(nth), Fault(point, nth, "raise"), monkeypatch)
        assert broker.messages == expected.messages
        assert broker.position is not None
        assert broker.position.offset == expected.position.offset
    assert nth > (1 if point is FaultPoint.AFTER_FOLD else 5)  # a whole chunk is folded once, at the end


def test_an_offset_stays_in_front_of_its_message_until_the_last_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, _ = run_until_done(tmp_path, None, monkeypatch)
    deletion = len(records()) - 2
    assert broker.offsets.count(deletion) > ROWS // MOST
    assert broker.offsets[-2:] == [deletion + 1, deletion + 2]
    assert broker.offsets == sorted(broker.offsets)


@pytest.mark.parametrize("moves", [False, True], ids=["the same worker", "another worker each time"])
def test_a_task_whose_time_is_over_returns_after_each_part_and_goes_on_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    moves: bool,  # noqa: FBT001  the parameter
) -> None:
    expected, _ = run_until_done(tmp_path / "whole", None, monkeypatch)
    broker, todo, returns = MemoryBroker(), records(), 0
    task = open_task(broker, tmp_path / "cut")
    while todo:
        report = task.process(todo, CuttingProcessor(), end=0.0)
        assert (report.chunks, report.messages) == (1, len(todo) - report.left)
        todo = todo[len(todo) - report.left :]
        assert not todo or report.end == todo[0].offset
        returns += 1
        if moves:
            task.close()
            task = open_task(broker, tmp_path / "cut")
    task.close()
    assert returns > ROWS // MOST
    assert broker.messages == expected.messages
    assert broker.offsets == expected.offsets


def test_a_task_whose_time_is_over_counts_all_that_is_left_of_several_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker gives what it has read: it may be more bytes than a chunk has."""
    expected, _ = run_until_done(tmp_path / "whole", None, monkeypatch)
    small = TASK._replace(chunk=TASK.chunk._replace(max_bytes=1))
    broker, todo = MemoryBroker(), records()
    task = open_task(broker, tmp_path / "cut", small)
    while todo:
        report = task.process(todo, CuttingProcessor(), end=0.0)
        todo = todo[len(todo) - report.left :]
        assert broker.position is not None
        assert not todo or broker.position.offset == todo[0].offset
    task.close()
    assert broker.messages == expected.messages


def test_a_lost_offset_of_a_state_that_has_only_a_snapshot_is_no_new_raw_partition(tmp_path: Path) -> None:
    """As `state reshard` leaves it."""
    version = next_version(NOTHING)
    store = CheckpointStore(ObjectStore(str(tmp_path / "checkpoint")), "group", PARTITION)
    store.write_snapshot(version, [], None, is_own=True)
    broker = MemoryBroker()
    with pytest.raises(CdcError, match="no committed offset"):
        run(broker, tmp_path)
    assert (broker.position, broker.messages) == (None, [])
