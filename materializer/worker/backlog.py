"""The raw messages that a worker has read but not folded, and which raw partitions are ready to be folded.

Folding costs a transaction, and most heartbeats change nothing. So heartbeats wait, as long as the only effect is that
a position is committed later. A watermark, which is a heartbeat of all raw partitions, is not even taken note of where
it changes nothing: such a raw partition sleeps. Whether a raw partition has work depends on the brokers' timestamps, as
in the fold.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING
from zlib import crc32

from cdc_common.messages.raw import is_heartbeat
from stream_runtime.records import WatermarkRecord

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from materializer.records import RawPartition, RawRecord
    from materializer.worker.watermarks import Heartbeat
    from stream_runtime.exactly_once.report import Report
    from stream_runtime.records import Rest

_TIMESTAMP = attrgetter("timestamp_ms")
_SPREAD = 0.25  # of the time that heartbeats wait: raw partitions that start together drift apart


class _PartitionBacklog:
    """The unfolded records of one raw partition.

    size: the bytes of their values.
    non_heartbeats: how many of the records are not heartbeats.
    rest: as Report's. None: it is ready with the next message, whatever it is.
    is_new: it has no state and no message yet.
    seen: the offset up to which watermarks count: the next one to come.
    folded_at: when the raw partition was last folded or was added.
    """

    __slots__ = ("folded_at", "is_new", "max_wait", "newest_ms", "non_heartbeats", "records", "rest", "seen", "size")

    def __init__(self, rest: Rest | None, folded_at: float, max_wait: float, *, is_new: bool) -> None:
        self.records: list[RawRecord] = []
        self.size = 0
        self.non_heartbeats = 0
        self.newest_ms = 0
        self.rest = rest
        self.is_new = is_new
        self.seen = 0
        self.folded_at = folded_at
        self.max_wait = max_wait

    def append(self, records: Sequence[RawRecord]) -> None:
        self.records += records
        self.size += _size(records)
        self.non_heartbeats += _non_heartbeats(records)
        self.newest_ms = max([self.newest_ms, *map(_TIMESTAMP, records)])

    def remove_first(self, records: Sequence[RawRecord]) -> None:
        if len(records) == len(self.records):
            self.records, self.size, self.non_heartbeats = [], 0, 0
            return
        has_heartbeats = self.non_heartbeats < len(self.records)
        self.records = self.records[len(records) :]
        self.size -= _size(records)
        self.non_heartbeats -= _non_heartbeats(records) if has_heartbeats else len(records)

    @property
    def is_due(self) -> bool:
        return bool(self.records) and self.is_due_at(self.newest_ms)

    def is_due_at(self, ms: int) -> bool:
        """Whether a message of this time is to be folded at once."""
        return self.rest is None or (self.rest.due_ms is not None and ms >= self.rest.due_ms)

    def has_work(self, heartbeats: Sequence[Heartbeat], now: float) -> bool:
        """Whether these heartbeats may change something in the state."""
        if self.is_new:
            return False
        newest_ms = max(heartbeat.timestamp_ms for heartbeat in heartbeats)
        if self.rest is None or self.is_due_at(newest_ms):
            return True
        if not self.rest.hosts.issuperset(heartbeat.host for heartbeat in heartbeats):
            return True
        purge_ms = self.rest.purge_ms
        return purge_ms is not None and newest_ms >= purge_ms and now - self.folded_at >= self.max_wait


class RawBacklog:
    """The backlogs of a worker's raw partitions. All times are seconds of one clock.

    A raw partition is active if it has unfolded messages other than heartbeats, and idle otherwise.
    max_wait_seconds: how long the heartbeats of an idle raw partition wait at most.
    max_heartbeats: how many of them may wait; with more, every idle raw partition is ready.
    """

    def __init__(self, max_wait_seconds: float, max_heartbeats: int) -> None:
        self._max_wait = max_wait_seconds
        self._max_heartbeats = max_heartbeats
        self._backlogs: dict[RawPartition, _PartitionBacklog] = {}

    @property
    def raw_partitions(self) -> set[RawPartition]:
        return set(self._backlogs)

    @property
    def asleep(self) -> int:
        """How many raw partitions have nothing to do before a message or a time comes."""
        return sum(backlog.is_new or backlog.rest is not None for backlog in self._backlogs.values())

    @property
    def active_size(self) -> tuple[int, int]:
        """How many messages the active raw partitions have, and the bytes of their values."""
        active = [backlog for backlog in self._backlogs.values() if backlog.non_heartbeats]
        return sum(len(backlog.records) for backlog in active), sum(backlog.size for backlog in active)

    def add(self, raw_partition: RawPartition, now: float, rest: Rest | None = None, *, is_new: bool = False) -> None:
        """rest: of its committed state; None if it is not known. is_new: it has never had a message."""
        spread = _SPREAD * crc32(str(raw_partition).encode()) / 2**32
        self._backlogs[raw_partition] = _PartitionBacklog(rest, now, self._max_wait * (1 - spread), is_new=is_new)

    def remove(self, raw_partition: RawPartition) -> None:
        self._backlogs.pop(raw_partition, None)

    def append(self, raw_partition: RawPartition, records: Sequence[RawRecord]) -> None:
        """Add records that were read."""
        self._backlogs[raw_partition].append(records)

    def mark_ready(self, topics: Collection[str]) -> None:
        """Fold the topics' raw partitions with their next message: the tables' schemas have changed."""
        for raw_partition, backlog in self._backlogs.items():
            if raw_partition.topic in topics:
                backlog.rest = None

    def wake(self, raw_partitions: Iterable[RawPartition]) -> None:
        """Fold those of the raw partitions that are here with the next heartbeat, also without any message before."""
        for raw_partition in raw_partitions:
            if raw_partition in self._backlogs:
                self._backlogs[raw_partition].rest = None
                self._backlogs[raw_partition].is_new = False

    def new_heartbeats(
        self, raw_partition: RawPartition, heartbeats: Sequence[Heartbeat], now: float
    ) -> Sequence[Heartbeat]:
        """Those of the heartbeats that the raw partition has not had, if they may change something in its state."""
        backlog = self._backlogs[raw_partition]
        if not backlog.has_work(heartbeats, now):
            return ()
        return [heartbeat for heartbeat in heartbeats if heartbeat.at >= backlog.seen]

    def append_heartbeats(self, raw_partition: RawPartition, end: int, heartbeats: Sequence[Heartbeat]) -> None:
        """Fold these heartbeats at once, after all messages that are there. end: all messages before this offset are
        read.
        """
        backlog = self._backlogs[raw_partition]
        backlog.append([WatermarkRecord(b"", heartbeat.value, end, heartbeat.timestamp_ms) for heartbeat in heartbeats])
        backlog.seen = max(heartbeat.at for heartbeat in heartbeats) + 1
        backlog.rest = None

    def active(self) -> list[RawPartition]:
        """The active raw partitions, the one folded longest ago first."""
        return self._by_age(
            raw_partition for raw_partition, backlog in self._backlogs.items() if backlog.non_heartbeats
        )

    def ready_idle(self, now: float) -> list[RawPartition]:
        """The idle raw partitions whose heartbeats must be folded now: first those that are due, then those that have
        waited long enough.
        """
        idle = {
            raw_partition: backlog
            for raw_partition, backlog in self._backlogs.items()
            if backlog.records and not backlog.non_heartbeats
        }
        is_full = sum(len(backlog.records) for backlog in idle.values()) > self._max_heartbeats
        due = self._by_age(raw_partition for raw_partition, backlog in idle.items() if backlog.is_due)
        late = self._by_age(
            raw_partition
            for raw_partition, backlog in idle.items()
            if not backlog.is_due and (is_full or now - backlog.folded_at >= backlog.max_wait)
        )
        return due + late

    def first_records(self, raw_partition: RawPartition, limit: int) -> list[RawRecord]:
        return self._backlogs[raw_partition].records[:limit]

    def mark_folded(self, raw_partition: RawPartition, records: list[RawRecord], report: Report, now: float) -> None:
        """Remove these records, which are the first ones. A fold that changed the state may leave more to do."""
        backlog = self._backlogs[raw_partition]
        backlog.remove_first(records)
        backlog.folded_at = now
        backlog.is_new = False
        backlog.rest = None if report.state.busy else report.state.rest

    def _by_age(self, raw_partitions: Iterable[RawPartition]) -> list[RawPartition]:
        return sorted(raw_partitions, key=lambda raw_partition: self._backlogs[raw_partition].folded_at)


def _size(records: Sequence[RawRecord]) -> int:
    return sum([len(record.value) for record in records])


def _non_heartbeats(records: Sequence[RawRecord]) -> int:
    return len(records) - sum([is_heartbeat(record.value) for record in records])
