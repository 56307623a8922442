"""Raw messages that a worker has read and not folded yet, and which raw partitions are to be run.

A heartbeat costs a transaction, and most say nothing: they wait, for as long as that changes nothing but when a
position is committed. What is due is decided by the messages' times, the brokers', as the fold decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from cdc_messages.raw import is_heartbeat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from materializer.exactly_once.partition_task import Report
    from materializer.records import RawPartition, RawRecord

_AT_ONCE = 0  # due with the next message, whatever it is
_SPREAD = 0.25  # of the time that heartbeats wait: so that partitions begun together do not stay together


class _Partition:
    """`rows`: how many of the records are no heartbeats. next_timer_ms: as Report's.

    `ran`: when it was run, or taken over.
    """

    __slots__ = ("newest_ms", "next_timer_ms", "ran", "records", "rows", "wait")

    def __init__(self, ran: float, wait: float) -> None:
        self.records: list[RawRecord] = []
        self.rows = 0
        self.newest_ms = 0
        self.next_timer_ms: int | None = _AT_ONCE
        self.ran = ran
        self.wait = wait

    def put(self, records: Iterable[RawRecord]) -> None:
        for record in records:
            self.records.append(record)
            self.rows += not is_heartbeat(record.value)
            self.newest_ms = max(self.newest_ms, record.timestamp_ms)

    @property
    def is_due(self) -> bool:
        return bool(self.records) and self.next_timer_ms is not None and self.newest_ms >= self.next_timer_ms


class Waiting:
    """The raw partitions of a worker. `seconds`: how long heartbeats wait at most; `most`: how many of them may wait,
    beyond which those wait no longer that have waited longest. Times are of one clock, in seconds.
    """

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._partitions: dict[RawPartition, _Partition] = {}

    @property
    def partitions(self) -> set[RawPartition]:
        return set(self._partitions)

    @property
    def backlog(self) -> tuple[int, int]:
        """How many messages wait that are not left for later, and the bytes of their values."""
        busy = [each.records for each in self._partitions.values() if each.rows]
        return sum(map(len, busy)), sum(len(record.value) for records in busy for record in records)

    def add(self, partition: RawPartition, now: float) -> None:
        share = crc32(str(partition).encode()) / 2**32
        self._partitions[partition] = _Partition(now, self._seconds * (1 - _SPREAD * share))

    def remove(self, partition: RawPartition) -> None:
        self._partitions.pop(partition, None)

    def put(self, partition: RawPartition, records: Iterable[RawRecord]) -> None:
        """Records have come."""
        self._partitions[partition].put(records)

    def urge(self, topic: str) -> None:
        """Something about a topic has changed that its states may have to follow."""
        for partition, known in self._partitions.items():
            if partition.topic == topic:
                known.next_timer_ms = _AT_ONCE

    def busy(self) -> list[RawPartition]:
        """The partitions that have something else than heartbeats, those first that were run longest ago."""
        return self._by_age(each for each, known in self._partitions.items() if known.rows)

    def quiet(self, now: float) -> list[RawPartition]:
        """The partitions whose heartbeats are to be folded now: those that are due, then those that have waited."""
        quiet = {each: known for each, known in self._partitions.items() if known.records and not known.rows}
        is_full = sum(len(known.records) for known in quiet.values()) > self._most
        due = self._by_age(each for each, known in quiet.items() if known.is_due)
        late = self._by_age(
            each for each, known in quiet.items() if not known.is_due and (is_full or now - known.ran >= known.wait)
        )
        return due + late

    def records(self, partition: RawPartition, most: int) -> list[RawRecord]:
        """As many of the partition's records, from the first on."""
        return self._partitions[partition].records[:most]

    def done(self, partition: RawPartition, records: list[RawRecord], report: Report, now: float) -> None:
        """These records, its first ones, are folded. What has made a new version may have more to do."""
        known = self._partitions[partition]
        known.records = known.records[len(records) :]
        known.rows -= sum(not is_heartbeat(record.value) for record in records)
        known.ran = now
        known.next_timer_ms = _AT_ONCE if report.versions else report.next_timer_ms

    def _by_age(self, partitions: Iterable[RawPartition]) -> list[RawPartition]:
        return sorted(partitions, key=lambda each: self._partitions[each].ran)
