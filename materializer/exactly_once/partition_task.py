"""The protocol of one raw partition: every message folded and its changes published exactly once.

The truth is in Kafka: the group's committed offset and its metadata name the state version. The order of steps makes
a crash at any point leave the old truth or the new one:

1. make the transactional producer, which fences an older attempt, and only then read the committed position;
2. bring the local state to that version;
3. for each chunk: fold in memory, produce; 4. store the changelog; 5. commit messages and position together;
6. apply the changelog to the local state; now and then store a snapshot.

What is too much for one transaction goes through steps 3 to 6 part by part. A message's offset is committed with its
last part: so where the partition stands within a message is part of the state, and whoever goes on is given it again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

import structlog

from cdc_messages.changes import RowChange
from cdc_messages.topics import partition_for
from cdc_program.errors import CdcError, Code
from materializer.errors import misplaced, skipped, start_over
from materializer.exactly_once.chunks import ChunkBounds, chunks
from materializer.exactly_once.position import Position, check_topic
from materializer.fault_points import FaultPoint, reach
from materializer.fold.gaps import DeadLetter
from materializer.fold.result import ChunkResult
from materializer.records import Message, RawPartition, RawRecord
from materializer.rows.overlay import StateReader
from materializer.store.changelog import Changelog, Head
from materializer.store.checkpoints import GoneError, PartitionHistory, Retention
from materializer.store.deadline import within
from materializer.store.restore import restore
from materializer.store.rocksdb import State
from materializer.store.versions import NOTHING, next_version, sequence

if TYPE_CHECKING:
    from pathlib import Path

    from materializer.store.checkpoints import Manifest

_logger = structlog.get_logger(__name__)
_CLEANED_IN_RETENTION = 10  # so often in the time that changelogs are kept


class Transactions(Protocol):
    """materializer.kafka.PartitionProducer."""

    def begin(self) -> None: ...
    def send(self, message: Message) -> None: ...
    def send_position(self, position: Position) -> None: ...
    def commit(self) -> None: ...
    def abandon(self) -> None: ...


class Limits(NamedTuple):
    """The settings that the protocol goes by."""

    chunk: ChunkBounds
    max_clock_jump_ms: float
    snapshot_every_versions: int
    changelogs_kept: Retention
    upload_seconds: float


class Work(NamedTuple):
    """What is done with the messages of one raw partition, whose topic has `partitions` of them and an id.

    `bury` makes the messages of the dead-letter topic. `next_timer_ms`: the time, of raw messages, at which the state
    has something to do by itself.
    """

    fold: Callable[[StateReader, Sequence[RawRecord]], ChunkResult]
    emit: Callable[[Iterable[RowChange]], Iterator[Message]]
    partitions: int
    topic_id: str = ""
    bury: Callable[[RawPartition, Iterable[DeadLetter]], Iterator[Message]] = lambda _partition, _letters: iter(())
    next_timer_ms: Callable[[StateReader], int | None] = lambda _state: None


class Report(NamedTuple):
    """What a task did: offsets [first, end) were folded, in so many messages, chunks and seconds.

    `stalled_publishers`: ids of publishers that have sent nothing for too long. `dead_letters`: messages dead-lettered.
    `read`, `written`: bytes from and to the checkpoint location. `versions`: new versions of the state.
    `next_timer_ms`: as Work's.
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
    next_timer_ms: int | None = None

    def and_then(self, later: Report) -> Report:
        """Of both, one after the other."""
        return later._replace(
            first=self.first if self.chunks else later.first,
            end=later.end if later.chunks else self.end,
            messages=self.messages + later.messages,
            changes=self.changes + later.changes,
            chunks=self.chunks + later.chunks,
            seconds=self.seconds + later.seconds,
            dead_letters=self.dead_letters + later.dead_letters,
            read=self.read + later.read,
            written=self.written + later.written,
            versions=self.versions + later.versions,
        )


class NotOwnerError(Exception):
    """Another process has committed since this one did: its producer is the newest."""


class Resources(NamedTuple):
    """What a process holds of a raw partition; `transactions` has fenced whoever else could commit."""

    transactions: Transactions
    read_position: Callable[[], Position | None]
    state: State
    history: PartitionHistory


class PartitionTask:
    """What a process keeps open of a raw partition; after any exception it is closed and made anew."""

    def __init__(self, partition: RawPartition, resources: Resources, limits: Limits) -> None:
        reach(FaultPoint.AFTER_INIT)
        self._partition = partition
        self._transactions, self._read_position, self._state, self._history = resources
        self._limits = limits
        self._committed: Position | None = None
        self._snapshot: Manifest | None = None
        self._snapshot_is_own = False
        self._snapshots_listed = False
        self._cleaned = -math.inf

    def run(self, records: Iterable[RawRecord], work: Work) -> Report:
        """Fold the records, in the order of their offsets, from the committed position on.

        CdcError stops the partition; NotOwnerError, raised before a record is taken, asks for a new PartitionTask; any
        other exception may go away when the task runs again.
        """
        started = time.monotonic()
        position = self._read_position()
        if self._committed not in (None, position):
            raise NotOwnerError
        reach(FaultPoint.AFTER_POSITION)
        report = Report(-1, -1, 0, 0, 0, 0.0)
        for chunk in chunks(records, self._limits.chunk):
            self._check_contiguous(chunk)
            position = position or self._adopt(chunk[0].offset, work)
            self._check_position(position, chunk[0].offset, work)
            todo = chunk[max(0, position.offset - chunk[0].offset) :]
            if position.reshards:
                check_placement(self._partition, todo, work.partitions)
            while todo:
                first = todo[0].offset
                position, result = self._fold(position, todo, work)
                report = Report(
                    first if report.chunks == 0 else report.first,
                    position.offset,
                    report.messages + position.offset - first,
                    report.changes + len(result.changes),
                    report.chunks + 1,
                    time.monotonic() - started,
                    result.stalled_publishers,
                    report.dead_letters + sum(letter.value is not None for letter in result.dead_letters),
                    versions=report.versions + bool(result.writes),
                )
                todo = todo[len(todo) - result.left :]
                if todo:
                    reach(FaultPoint.AFTER_PART)
        if report.chunks and position is not None:
            report = report._replace(next_timer_ms=work.next_timer_ms(self._state))
            self._keep_snapshots(position.version)
        return report

    def close(self) -> None:
        self._transactions.abandon()
        self._state.close()

    def _adopt(self, first: int, work: Work) -> Position:
        """The position of a partition that the group has never committed, committed before anything is stored.

        So a group that was lost later can be told from one that never was: then there are changelogs.
        """
        if self._history.parents():
            raise CdcError(
                Code.STATE_MISMATCH,
                f"The group has no committed offset of {self._partition}, but the checkpoint location holds its state: "
                "the group was deleted, has expired, or is not the one that this state belongs to.",
                "Set group_id and checkpoint_location as they were; or commit the offset and the metadata that the "
                f"newest changelog names. {start_over(self._partition.topic)}",
            )
        if first != 0:
            raise skipped(self._partition, 0, first)
        position = Position(first, NOTHING, work.partitions, work.topic_id)
        check_topic(position, work.partitions, work.topic_id, self._partition)
        self._transactions.begin()
        self._commit(position)
        reach(FaultPoint.AFTER_ADOPT)
        return position

    def _fold(self, position: Position, records: list[RawRecord], work: Work) -> tuple[Position, ChunkResult]:
        """Steps 2 to 6 for one chunk, or for as much of it as one transaction is good for: the new position, and what
        the fold made of it.

        A chunk that changes nothing (heartbeats, duplicates) moves only the offset: the state's version stays.
        """
        before = self._restore(position)
        result = work.fold(self._state, records)
        reach(FaultPoint.AFTER_FOLD if not result.left else FaultPoint.AFTER_PART_FOLD)
        check_clock(self._partition, before, result.now_ms, self._limits.max_clock_jump_ms)
        offset = records[0].offset + len(records) - result.left
        self._transactions.begin()
        if result.writes:
            position = self._store(position, offset, result, work)
        else:
            position = position._replace(offset=offset, topic_id=position.topic_id or work.topic_id)
            self._commit(position)
        return position, result

    def _store(self, position: Position, offset: int, result: ChunkResult, work: Work) -> Position:
        """Steps 3 to 6."""
        after = position._replace(
            offset=offset, version=next_version(position.version), topic_id=position.topic_id or work.topic_id
        )
        head = Head(after.version, after.offset, result.now_ms, work.partitions)
        changelog = Changelog(head, position.version, position.offset, result.writes)
        for message in chain(work.emit(result.changes), work.bury(self._partition, result.dead_letters)):
            self._transactions.send(message)
            reach(FaultPoint.IN_PRODUCE)
        reach(FaultPoint.AFTER_PRODUCE)
        upload_seconds = self._limits.upload_seconds
        within(
            upload_seconds,
            lambda: self._history.write_changelog(changelog),
            f"storing a changelog of {self._partition}",
        )
        reach(FaultPoint.AFTER_CHANGELOG)
        self._commit(after)
        self._state.apply(changelog)
        reach(FaultPoint.AFTER_APPLY)
        return after

    def _commit(self, position: Position) -> None:
        self._transactions.send_position(position)
        reach(FaultPoint.AFTER_SEND_OFFSETS)
        self._transactions.commit()
        self._committed = position
        reach(FaultPoint.AFTER_COMMIT)

    def _restore(self, position: Position) -> Head | None:
        restore(self._state, self._history, position.version)
        head = self._state.head
        if head is not None and head.offset > position.offset:  # it may lie behind it by what changes nothing
            raise CdcError(
                Code.STATE_MISMATCH,
                f"{self._partition}: the group's offset is {position.offset}, but its state {head.version} ends at "
                f"{head.offset}.",
                "Set the group's offset and metadata back as they were.",
            )
        return head

    def _check_contiguous(self, chunk: list[RawRecord]) -> None:
        first, last = chunk[0].offset, chunk[-1].offset
        if last - first + 1 != len(chunk):
            gap = next(a.offset for a, b in pairwise(chunk) if b.offset != a.offset + 1)
            raise skipped(self._partition, gap + 1, chunk[gap - first + 1].offset)

    def _check_position(self, position: Position, first: int, work: Work) -> None:
        check_topic(position, work.partitions, work.topic_id, self._partition)
        if first > position.offset:
            raise skipped(self._partition, position.offset, first)

    def _keep_snapshots(self, version: str) -> None:
        """A snapshot that cannot be stored now is stored later: the changelogs are kept until then."""
        try:
            if not self._snapshots_listed:
                self._snapshot = self._newest_snapshot()
                self._snapshots_listed = True
            last = self._snapshot.version if self._snapshot else NOTHING
            if sequence(version) - sequence(last) >= self._limits.snapshot_every_versions:
                self._state.checkpoint(lambda files: self._store_snapshot(version, files))
                reach(FaultPoint.AFTER_SNAPSHOT)
                self._clean_up(version)
        except (OSError, GoneError, CdcError) as error:
            _logger.warning("no snapshot stored", partition=str(self._partition), error=str(error))

    def _newest_snapshot(self) -> Manifest | None:
        """None where there is none, or none that can be read: the next one then takes its place."""
        stored = self._history.snapshots()
        try:
            return self._history.read_manifest(stored[-1]) if stored else None
        except CdcError as error:
            if error.code is not Code.STATE_DAMAGED:
                raise
            _logger.warning("snapshot damaged", partition=str(self._partition), error=str(error))
            return None

    def _store_snapshot(self, version: str, files: dict[Path, str]) -> None:
        self._snapshot = self._history.write_snapshot(version, files, self._snapshot, is_own=self._snapshot_is_own)
        self._snapshot_is_own = True

    def _clean_up(self, version: str) -> None:
        """Changelogs not after each snapshot: there may be many, and all are listed."""
        now = time.monotonic()
        if now - self._cleaned >= self._limits.changelogs_kept.seconds / _CLEANED_IN_RETENTION:
            self._history.clean_up_changelogs(version, self._limits.changelogs_kept)
            self._cleaned = now
        reach(FaultPoint.IN_CLEANUP)
        self._history.clean_up(version)
        reach(FaultPoint.AFTER_CLEANUP)


def check_clock(partition: RawPartition, before: Head | None, now_ms: int, most_ms: float) -> None:
    """CdcError(CLOCK_JUMP)."""
    jump = now_ms - before.now_ms if before is not None else 0
    if jump > most_ms:
        raise CdcError(
            Code.CLOCK_JUMP,
            f"The time of {partition} would leap by {jump / 3_600_000:.1f} h: the raw messages' timestamps "
            "are the brokers'.",
            "If a broker's clock was wrong, correct it: going on would let rows expire early. "
            "If the partition really was quiet for so long, start once with a larger "
            "materializer.max_clock_jump_hours.",
        )


def check_placement(partition: RawPartition, records: Iterable[RawRecord], count: int) -> None:
    """CdcError(PARTITIONS_CHANGED) for a record whose key belongs to another of the topic's `count` partitions."""
    for record in records:
        if record.key and (belongs := partition_for(record.key, count)) != partition.partition:
            raise misplaced(partition, record.offset, belongs)
