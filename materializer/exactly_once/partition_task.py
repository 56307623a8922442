"""The protocol of one raw partition: every message is folded and its changes are published exactly once.

The committed state is defined in Kafka: the group's committed offset and its metadata name the state version. After a
crash at any point the committed state is the one before or the one after the transaction, because of the order of the
steps:

1. create the transactional producer, which fences an older attempt; only then read the committed position;
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
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import structlog

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.topics import partition_for
from materializer.errors import advise_rebuild, raw_message_misplaced, raw_messages_skipped
from materializer.exactly_once.chunks import ChunkSettings, chunks
from materializer.exactly_once.clock_check import check_clock
from materializer.exactly_once.committer import Committer
from materializer.exactly_once.position import Position, check_topic
from materializer.exactly_once.rest import NO_TIDYING, Tidying
from materializer.fault_points import FaultPoint, reach
from materializer.records import Rest, WatermarkRecord
from materializer.store.unused import DiskUse
from materializer.store.versions import NOTHING, sequence

if TYPE_CHECKING:
    from materializer.exactly_once.processor import Processor
    from materializer.exactly_once.resources import Resources
    from materializer.fold.result import ChunkResult
    from materializer.records import RawPartition, RawRecord, TopicShape
    from materializer.store.changelog import Head

_logger = structlog.get_logger(__name__)


class TaskSettings(NamedTuple):
    """chunk: how much is folded at a time. max_clock_ahead_ms: how far the brokers' time may be ahead (check_clock).
    tidying: what an idle state does before it sleeps.
    """

    chunk: ChunkSettings
    max_clock_ahead_ms: float
    tidying: Tidying = NO_TIDYING


class Report(NamedTuple):
    """What a task did: it folded the offsets [first, end), in so many messages, chunks and seconds.

    `stalled_publishers`: ids of publishers that have sent nothing for too long. `dead_letters`: how many messages
    were dead-lettered. `native`: how many messages the native core has folded. `read`, `written`: bytes from and to
    the checkpoint location. `versions`: how many versions of the state were stored. `rest`: as Processor.rest.
    `busy`: whether more than times was stored. `left`: how many of the last messages given are not folded yet,
    since the time was over. `state_bytes`: what its local state takes. `disk`: what all states of the worker's
    machine take, if they were measured since the last report. `running_snapshots`, `lost_hosts`: as ChunkResult's
    of the last chunk. `ops`: how many changes of each operation. `commit_seconds`: how long of `seconds` steps 3 to
    6 took, without the fold. `restores`: how many states the worker brought to another version since the last
    report. `renewed`: how often the brokers had forgotten the idle producer, so that a new one was made.
    """

    first: int
    end: int
    messages: int
    changes: int
    chunks: int
    seconds: float
    stalled_publishers: Sequence[str] = ()
    dead_letters: int = 0
    read: int = 0
    written: int = 0
    versions: int = 0
    rest: Rest | None = None
    busy: bool = False
    native: int = 0
    left: int = 0
    state_bytes: int = 0
    disk: DiskUse | None = None
    running_snapshots: Sequence[str] = ()
    lost_hosts: Mapping[str, int] = {}
    ops: Mapping[str, int] = {}
    commit_seconds: float = 0.0
    restores: int = 0
    renewed: int = 0

    def with_chunk(self, first: int, end: int, result: ChunkResult) -> Report:
        """The report with one more chunk, or part of one."""
        return self._replace(
            first=self.first if self.chunks else first,
            end=end,
            messages=self.messages + end - first,
            changes=self.changes + len(result.changes),
            chunks=self.chunks + 1,
            stalled_publishers=result.stalled_publishers,
            dead_letters=self.dead_letters + sum(letter.value is not None for letter in result.dead_letters),
            versions=self.versions + bool(result.writes),
            native=self.native + result.native,
            running_snapshots=result.running_snapshots,
            lost_hosts=result.lost_hosts,
            ops=Counter(self.ops) + Counter(map(attrgetter("op"), result.changes)),
        )

    def and_then(self, later: Report) -> Report:
        """Both, one after the other."""
        return later._replace(
            first=self.first if self.chunks else later.first,
            end=later.end if later.chunks else self.end,
            running_snapshots=later.running_snapshots if later.chunks else self.running_snapshots,
            lost_hosts=later.lost_hosts if later.chunks else self.lost_hosts,
            messages=self.messages + later.messages,
            changes=self.changes + later.changes,
            chunks=self.chunks + later.chunks,
            seconds=self.seconds + later.seconds,
            dead_letters=self.dead_letters + later.dead_letters,
            read=self.read + later.read,
            written=self.written + later.written,
            versions=self.versions + later.versions,
            native=self.native + later.native,
            disk=later.disk or self.disk,
            ops=Counter(self.ops) + Counter(later.ops),
            commit_seconds=self.commit_seconds + later.commit_seconds,
            restores=self.restores + later.restores,
            renewed=self.renewed + later.renewed,
        )


NOTHING_DONE = Report(-1, -1, 0, 0, 0, 0.0)


class NotOwnerError(Exception):
    """Another process has committed since this one did: its producer is the newest."""


class PartitionTask:
    """What a process keeps open of a raw partition. After any exception it must be closed, and a new one opened."""

    def __init__(
        self,
        raw_partition: RawPartition,
        resources: Resources,
        settings: TaskSettings,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Step 1 has begun: `resources` holds the producer that fences older attempts. wall_clock: in seconds."""
        reach(FaultPoint.AFTER_INIT)
        self._raw_partition = raw_partition
        self._resources = resources
        self._state = resources.state
        self._settings = settings
        self._wall_clock = wall_clock
        self._committer = Committer(resources)

    def process(self, records: Iterable[RawRecord], processor: Processor, end: float = math.inf) -> Report:
        """Fold the records, in the order of their offsets, from the committed position on.

        end: after this time of the monotonic clock no further part of a chunk is begun. The report tells how many of
        the records are left. The state says how far the first one has got.

        CdcError stops the raw partition. NotOwnerError, raised before a record is taken, asks for a new PartitionTask.
        Any other exception may not recur when the task runs again.
        """
        started = time.monotonic()
        self._committer.seconds = 0.0
        position = self._read_position()
        report = NOTHING_DONE
        left = chunks(records, self._settings.chunk)
        for chunk in left:
            check_contiguous(self._raw_partition, chunk)
            position = position or self._adopt(chunk[0].offset, processor.shape)
            todo = self._new_records(position, chunk, processor.shape)
            while todo:
                first = position.offset
                position, result = self._fold(position, todo, processor)
                report = report.with_chunk(first, position.offset, result)
                report = report._replace(busy=report.busy or processor.is_busy(result))
                todo = todo[len(todo) - result.left :]
                if todo:
                    reach(FaultPoint.AFTER_PART)
                    if time.monotonic() >= end:
                        report = report._replace(left=len(todo) + sum(map(len, left)))
                        return self._finish(report, started, position, processor)
        return report if position is None else self._finish(report, started, position, processor)

    def _finish(self, report: Report, started: float, position: Position, processor: Processor) -> Report:
        """The report with what is known at the end, which is also the time for a snapshot."""
        if not report.chunks:
            return report
        head = self._state.head
        rest = None if head is None else self._rest(position, sequence(position.version), head.now_ms, processor)
        self._state.store_snapshot_if_due(position.version)
        seconds = time.monotonic() - started
        return report._replace(seconds=seconds, commit_seconds=self._committer.seconds, rest=rest)

    def state_bytes(self) -> int:
        """What the local state takes on this machine."""
        return self._state.local.size()

    def close(self) -> None:
        self._resources.close()

    def _read_position(self) -> Position | None:
        """The end of step 1. NotOwnerError if it is not the position that this process has committed last."""
        position = self._resources.read_position(self._raw_partition)
        if self._committer.committed not in (None, position):
            raise NotOwnerError
        reach(FaultPoint.AFTER_POSITION)
        return position

    def _adopt(self, first: int, shape: TopicShape) -> Position:
        """The first position of a raw partition, committed before any state is stored.

        This distinguishes a new group from one that was lost: a lost group has a stored state.
        """
        if self._state.is_stored():
            raise CdcError(
                Code.STATE_MISMATCH,
                f"The group has no committed offset of {self._raw_partition}, but the checkpoint location holds its "
                "state: the group was deleted, has expired, or is not the group of this state.",
                "Restore the earlier group_id and checkpoint_location. If you have a copy of the lost offset with its "
                f"metadata, commit both. Otherwise: {advise_rebuild(self._raw_partition.topic)}",
            )
        if first != 0:
            raise raw_messages_skipped(self._raw_partition, 0, first)
        position = Position(first, NOTHING, shape.partitions, shape.topic_id)
        check_topic(position, shape, self._raw_partition)
        self._committer.commit_position(position)
        reach(FaultPoint.AFTER_ADOPT)
        return position

    def _new_records(self, position: Position, chunk: list[RawRecord], shape: TopicShape) -> list[RawRecord]:
        """The records of the chunk that are not folded yet. CdcError if it does not continue the position."""
        first = chunk[0].offset
        check_topic(position, shape, self._raw_partition)
        if first > position.offset:
            raise raw_messages_skipped(self._raw_partition, position.offset, first)
        found = [each for each in chunk if each.offset >= position.offset or type(each) is WatermarkRecord]
        check_watermarks(self._raw_partition, position.offset, found)
        if position.reshards:
            check_placement(self._raw_partition, found, shape.partitions)
        return found

    def _fold(self, position: Position, records: list[RawRecord], processor: Processor) -> tuple[Position, ChunkResult]:
        """Steps 2 to 6 for one chunk, or for the part of it that fits one transaction: the new position and the result.

        A chunk that changes nothing (heartbeats, duplicates) moves only the offset: the state's version stays.
        """
        before = self._restore(position)
        result = processor.fold(self._state.local, records)
        reach(FaultPoint.AFTER_FOLD if not result.left else FaultPoint.AFTER_PART_FOLD)
        check_clock(self._raw_partition, before, result, 1000 * self._wall_clock(), self._settings.max_clock_ahead_ms)
        offset = _offset_after(position.offset, records[: len(records) - result.left])
        version, now_ms = sequence(position.version), 0 if before is None else before.now_ms
        if result.writes:
            messages = processor.messages(self._raw_partition, result)
            if processor.is_busy(result):
                position = position._replace(rest=None, busy=(version + 1, result.now_ms))
            else:
                position = position._replace(rest=self._rest(position, version + 1, result.now_ms, processor))
            position = self._committer.commit_chunk(position, offset, result, messages)
            if result.moved_to:
                _logger.info("rows moved", partition=str(self._raw_partition), topic=result.moved_to, offset=offset)
        else:
            after = position._replace(offset=offset, busy=position.busy or (version, now_ms))
            after = after._replace(rest=self._rest(after, version, now_ms, processor))
            if after != position:
                self._committer.commit_position(after)
            position = after
        return position, result

    def _rest(self, position: Position, version: int, stored_ms: int, processor: Processor) -> Rest | None:
        """How long the raw partition may sleep: its newest version has this number and this time."""
        rest = processor.rest(self._state.local)
        if rest is None or position.busy is None or not version:
            return rest
        return self._settings.tidying.applied_to(rest, position.busy, version, stored_ms)

    def _restore(self, position: Position) -> Head | None:
        """Step 2."""
        self._state.restore_to(position.version)
        head = self._state.head
        if head is not None and head.offset > position.offset:  # it may be earlier, by messages that change nothing
            raise CdcError(
                Code.STATE_MISMATCH,
                f"{self._raw_partition}: the group's offset is {position.offset}, but its state {head.version} ends at "
                f"{head.offset}.",
                "Restore the group's earlier offset and metadata.",
            )
        return head


def check_contiguous(raw_partition: RawPartition, chunk: Sequence[RawRecord]) -> None:
    """Raise CdcError(RAW_SKIPPED) if an offset is missing between two records."""
    read = [each.offset for each in chunk if type(each) is not WatermarkRecord]
    if read and read[-1] - read[0] + 1 != len(read):
        gap, following = next((a, b) for a, b in pairwise(read) if b != a + 1)
        raise raw_messages_skipped(raw_partition, gap + 1, following)


def check_watermarks(raw_partition: RawPartition, offset: int, records: Iterable[RawRecord]) -> None:
    """Raise CdcError(RAW_SKIPPED) if a watermark would be folded before a message that it speaks of. offset: of the
    first of the messages.
    """
    for record in records:
        if type(record) is not WatermarkRecord:
            offset = record.offset + 1
        elif record.offset > offset:
            raise raw_messages_skipped(raw_partition, offset, record.offset)


def _offset_after(offset: int, folded: Sequence[RawRecord]) -> int:
    """The next offset once these records are folded from `offset` on."""
    return next((each.offset + 1 for each in reversed(folded) if type(each) is not WatermarkRecord), offset)


def check_placement(raw_partition: RawPartition, records: Iterable[RawRecord], count: int) -> None:
    """Raise CdcError(RAW_PARTITIONS_CHANGED) for a record whose key belongs to another of the topic's `count`
    partitions.
    """
    for record in records:
        if record.key and (expected := partition_for(record.key, count)) != raw_partition.partition:
            raise raw_message_misplaced(raw_partition, record.offset, expected)
