"""The protocol of one source partition: every message is folded and its changes are published exactly once.

The committed state is defined in Kafka: the group's committed offset and its metadata name the state version. After a
crash at any point the committed state is the one before or the one after the transaction, because of the order of the
steps:

1. open the commit protocol, which fences an older attempt; only then read the committed position;
2. restore the local state to that version;
3. for each chunk: fold it in memory and produce its messages;
4. store its changelog;
5. commit messages and position together;
6. apply the changelog to the local state; store a snapshot from time to time.

A chunk that is too much for one transaction goes through steps 3 to 6 part by part. A message's offset is committed
with its last part. The state therefore records how far the partition has got within a message, and the next task is
given that message again.
"""

from __future__ import annotations

import math
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cdc_common.messages.topics import partition_for
from stream_runtime.exactly_once.chunks import ChunkSettings, chunks
from stream_runtime.exactly_once.commits import NotOwnerError
from stream_runtime.exactly_once.committer import Committer
from stream_runtime.exactly_once.position import Position, check_topic, decode
from stream_runtime.exactly_once.report import NOTHING_DONE
from stream_runtime.exactly_once.rest import NO_TIDYING, Tidying
from stream_runtime.fault_points import FaultPoint, reach
from stream_runtime.faults import NEUTRAL_FAULTS, Faults
from stream_runtime.records import Rest, WatermarkRecord
from stream_runtime.state.versions import NOTHING, sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stream_runtime.exactly_once.processor import Processor, R, Result
    from stream_runtime.exactly_once.report import Report
    from stream_runtime.exactly_once.resources import Resources
    from stream_runtime.records import Record, SourcePartition, TopicShape
    from stream_runtime.state.changelog import Head


class Check(Protocol):
    def __call__(self, partition: SourcePartition, before: Head | None, result: Any, worker_ms: float, /) -> None:  # noqa: ANN401 - the job's
        """Raise CdcError if the result of a chunk must not be committed. before: the state's head before the chunk.
        worker_ms: this worker's wall clock.
        """
        ...


def accept_all(_partition: SourcePartition, _before: Head | None, _result: object, _worker_ms: float) -> None:
    """A Check without a doubt."""


class TaskSettings(NamedTuple):
    """The settings of a task."""

    # How much is processed at a time.
    chunk: ChunkSettings
    # Raises CdcError for a result that must not be committed.
    check: Check = accept_all
    # The versions that an idle state makes before it sleeps.
    tidying: Tidying = NO_TIDYING
    # Makes the errors, in the job's words.
    faults: Faults = NEUTRAL_FAULTS
    # Whether offsets may be missing: the topic has transactions, whose markers have offsets. Its reader then finds out
    # that messages were deleted.
    has_gaps: bool = False


class PartitionTask:
    """The open task of a source partition in a process. After any exception it must be closed, and a new one opened."""

    def __init__(
        self,
        partition: SourcePartition,
        resources: Resources,
        settings: TaskSettings,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Step 1 has begun: `resources` has fenced older attempts. wall_clock: in seconds."""
        reach(FaultPoint.AFTER_INIT)
        self._partition = partition
        self._resources = resources
        self._state = resources.state
        self._settings = settings
        self._wall_clock = wall_clock
        self._faults = settings.faults
        self._committer = Committer(partition, resources)

    def process(self, records: Iterable[Record], processor: Processor[R], end: float = math.inf) -> Report:
        """Fold the records, in the order of their offsets, from the committed position on.

        end: after this time of the monotonic clock no further part of a chunk is begun. The report tells how many of
        the records are left. The state says how far the first one has got.

        CdcError stops the partition. NotOwnerError, raised before a record is taken, asks for a new PartitionTask.
        Any other exception may not recur when the task runs again.
        """
        started = time.monotonic()
        self._committer.seconds = 0.0
        position = self._read_position()
        report = NOTHING_DONE
        left = chunks(records, self._settings.chunk)
        for chunk in left:
            if not self._settings.has_gaps:
                check_contiguous(self._partition, chunk, self._faults)
            position = position or self._adopt(chunk[0].offset, processor.shape)
            todo = self._new_records(position, chunk, processor.shape)
            while todo:
                first = position.offset
                position, result = self._fold(position, todo, processor)
                report = processor.add_to(report, first, position.offset, result)
                report = _with_state(report, result, is_busy=processor.is_busy(result))
                todo = todo[len(todo) - result.left :]
                if todo:
                    reach(FaultPoint.AFTER_PART)
                    if time.monotonic() >= end:
                        report = report._replace(left=len(todo) + sum(map(len, left)))
                        return self._finish(report, started, position, processor)
        return report if position is None else self._finish(report, started, position, processor)

    def _finish(self, report: Report, started: float, position: Position, processor: Processor[R]) -> Report:
        """The report with what is known at the end, which is also the time for a snapshot."""
        if not report.chunks:
            return report
        head = self._state.head
        rest = None if head is None else self._rest(position, sequence(position.version), head.now_ms, processor)
        self._state.store_snapshot_if_due(position.version)
        seconds = time.monotonic() - started
        state = report.state._replace(rest=rest)
        return report._replace(seconds=seconds, commit_seconds=self._committer.seconds, state=state)

    def state_bytes(self) -> int:
        """The size of the local state on this machine."""
        return self._state.local.size()

    def close(self) -> None:
        self._resources.close()

    def _read_position(self) -> Position | None:
        """The end of step 1. NotOwnerError if it is not the position that this process has committed last."""
        stored = self._resources.commits.read()[self._partition]
        position = None if stored is None else decode(stored.offset, stored.metadata, self._partition, self._faults)
        if self._committer.committed not in (None, position):
            raise NotOwnerError
        reach(FaultPoint.AFTER_POSITION)
        return position

    def _adopt(self, first: int, shape: TopicShape) -> Position:
        """The first position of a source partition, committed before any state is stored.

        This distinguishes a new group from one that was lost: a lost group has a stored state.
        """
        if self._state.is_stored():
            raise self._faults.state_without_offset(self._partition)
        if first != 0 and not self._settings.has_gaps:
            raise self._faults.messages_skipped(self._partition, 0, first)
        position = Position(first, NOTHING, shape.partitions, shape.topic_id)
        check_topic(position, shape, self._partition, self._faults)
        self._committer.commit_position(position)
        reach(FaultPoint.AFTER_ADOPT)
        return position

    def _new_records(self, position: Position, chunk: list[Record], shape: TopicShape) -> list[Record]:
        """The records of the chunk that are not folded yet. CdcError if it does not continue the position."""
        first = chunk[0].offset
        check_topic(position, shape, self._partition, self._faults)
        if first > position.offset and not self._settings.has_gaps:
            raise self._faults.messages_skipped(self._partition, position.offset, first)
        found = chunk
        if first < position.offset or _has_watermarks(chunk):
            found = [record for record in chunk if record.offset >= position.offset or type(record) is WatermarkRecord]
            check_watermarks(self._partition, position.offset, found, self._faults)
        if position.reshards:
            check_placement(self._partition, found, shape.partitions, self._faults)
        return found

    def _fold(self, position: Position, records: list[Record], processor: Processor[R]) -> tuple[Position, R]:
        """Steps 2 to 6 for one chunk, or for the part of it that fits one transaction: the new position and the result.

        A chunk that changes nothing (heartbeats, duplicates) moves only the offset: the state's version stays.
        """
        before = self._restore(position)
        result = processor.fold(self._state.local, records)
        reach(FaultPoint.AFTER_FOLD if not result.left else FaultPoint.AFTER_PART_FOLD)
        self._settings.check(self._partition, before, result, 1000 * self._wall_clock())
        offset = _offset_after(position.offset, records[: len(records) - result.left])
        version, now_ms = sequence(position.version), 0 if before is None else before.now_ms
        if result.writes:
            messages = processor.messages(self._partition, result)
            if processor.is_busy(result):
                position = position._replace(rest=None, busy=(version + 1, result.now_ms))
            else:
                position = position._replace(rest=self._rest(position, version + 1, result.now_ms, processor))
            position = self._committer.commit_chunk(position, offset, result, messages)
            processor.log_committed(self._partition, offset, result)
        else:
            after = position._replace(offset=offset, busy=position.busy or (version, now_ms))
            after = after._replace(rest=self._rest(after, version, now_ms, processor))
            if after != position:
                self._committer.commit_position(after)
            position = after
        return position, result

    def _rest(self, position: Position, version: int, stored_ms: int, processor: Processor[R]) -> Rest | None:
        """How long the source partition may sleep: its newest version has this number and this time."""
        rest = processor.rest(self._state.local)
        if rest is None or position.busy is None or not version:
            return rest
        return self._settings.tidying.applied_to(rest, position.busy, version, stored_ms)

    def _restore(self, position: Position) -> Head | None:
        """Step 2."""
        self._state.restore_to(position.version)
        head = self._state.head
        if head is not None and head.offset > position.offset:  # it may be earlier, by messages that change nothing
            raise self._faults.state_ahead(self._partition, position.offset, head.version, head.offset)
        return head


def _with_state(report: Report, result: Result, *, is_busy: bool) -> Report:
    """The report with what a chunk has done to the state."""
    state = report.state
    versions, busy = state.versions + bool(result.writes), state.busy or is_busy
    return report._replace(state=state._replace(versions=versions, busy=busy))


def check_contiguous(partition: SourcePartition, chunk: Sequence[Record], faults: Faults) -> None:
    """Raise CdcError(RAW_SKIPPED) if an offset is missing between two records."""
    if chunk[-1].offset - chunk[0].offset + 1 == len(chunk) and not _has_watermarks(chunk):
        return
    read = [record.offset for record in chunk if type(record) is not WatermarkRecord]
    if read and read[-1] - read[0] + 1 != len(read):
        gap, following = next((a, b) for a, b in pairwise(read) if b != a + 1)
        raise faults.messages_skipped(partition, gap + 1, following)


def _has_watermarks(records: Sequence[Record]) -> bool:
    return WatermarkRecord in set(map(type, records))  # the fastest way: chunks have thousands of records


def check_watermarks(partition: SourcePartition, offset: int, records: Iterable[Record], faults: Faults) -> None:
    """Raise CdcError(RAW_SKIPPED) if a watermark would be folded before a message that it speaks of. offset: of the
    first of the messages.
    """
    for record in records:
        if type(record) is not WatermarkRecord:
            offset = record.offset + 1
        elif record.offset > offset:
            raise faults.messages_skipped(partition, offset, record.offset)


def _offset_after(offset: int, folded: Sequence[Record]) -> int:
    """The next offset once these records are folded from `offset` on."""
    return next((record.offset + 1 for record in reversed(folded) if type(record) is not WatermarkRecord), offset)


def check_placement(partition: SourcePartition, records: Iterable[Record], count: int, faults: Faults) -> None:
    """Raise CdcError(RAW_PARTITIONS_CHANGED) for a record whose key belongs to another of the topic's `count`
    partitions.
    """
    for record in records:
        if record.key and (expected := partition_for(record.key, count)) != partition.partition:
            raise faults.message_misplaced(partition, record.offset, expected)
