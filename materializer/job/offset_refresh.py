"""Keeps the positions of raw partitions without messages alive: brokers forget a group's offset that nobody commits
(offsets.retention.minutes, 7 days by default). The driver's part.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import structlog

from cdc_program.errors import CdcError, Code
from materializer.exactly_once.position import Position, check_no_command
from materializer.kafka import PRODUCER_DEFAULTS, GroupPositions, PartitionProducer, driver_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from cdc_program.settings import Settings
    from materializer.records import RawPartition

_LOOK_SECONDS = 60.0
_AT_ONCE = 10  # positions that are committed again while a batch waits
_logger = structlog.get_logger(__name__)


class _Seen(NamedTuple):
    position: Position
    since: float


class Renewal:
    """Called now and then, while no batch is in process."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._kafka, self._group = settings.kafka, settings.materializer.group_id
        self._period = settings.materializer.offset_refresh_hours * 3600
        self._limits = PRODUCER_DEFAULTS._replace(transaction_seconds=settings.materializer.transaction_timeout_seconds)
        self._clock = clock
        self._next = clock()
        self._seen: dict[RawPartition, _Seen] = {}
        self._latest: GroupPositions | None = None
        self._stable: GroupPositions | None = None

    @property
    def is_due(self) -> bool:
        return self._clock() >= self._next

    def run(self, partitions: Collection[RawPartition]) -> None:
        """Look at the positions, and commit again those that have not moved for the period.

        CdcError: STATE_MISMATCH where one is gone that was there; KAFKA_UNREACHABLE, KAFKA_REFUSED.
        """
        now = self._clock()
        self._next = now + min(_LOOK_SECONDS, self._period / 4)
        if not partitions:
            return
        with driver_errors(f"read the offsets of the group {self._group}"):
            self._note(self._positions(stable=False).read(partitions), now)
        old = [partition for partition, seen in self._seen.items() if now - seen.since >= self._period]
        for partition in old[:_AT_ONCE]:
            with driver_errors(f"commit the offset of {partition} again"):
                self._seen[partition] = _Seen(self._commit_again(partition), now)
        if len(old) > _AT_ONCE:
            self._next = now

    def _note(self, positions: dict[RawPartition, Position | None], now: float) -> None:
        for partition, position in positions.items():
            seen = self._seen.get(partition)
            if position is None:
                if seen is not None:
                    raise _lost(self._group, partition)
            elif seen is None or seen.position != position:
                self._seen[partition] = _Seen(position, now)

    def _commit_again(self, partition: RawPartition) -> Position:
        """As a task commits: after its producer has fenced all others, so that no newer position is put back.

        The partition's task sees a position that it has not committed, and makes a new producer.
        """
        positions = self._positions(stable=True)
        producer = PartitionProducer(self._kafka, self._group, partition, positions.consumer, self._limits)
        position = positions.read([partition])[partition]
        if position is None:
            raise _lost(self._group, partition)
        check_no_command(position, partition)  # what a command commits for all partitions together must stand
        position = position._replace(refreshes=position.refreshes + 1)
        producer.begin()
        producer.send_position(position)
        producer.commit()
        _logger.debug("position committed again", partition=str(partition), offset=position.offset)
        return position

    def _positions(self, *, stable: bool) -> GroupPositions:
        if stable:
            self._stable = self._stable or GroupPositions(self._kafka, self._group)
            return self._stable
        self._latest = self._latest or GroupPositions(self._kafka, self._group, stable=False)
        return self._latest


def _lost(group: str, partition: RawPartition) -> CdcError:
    return CdcError(
        Code.STATE_MISMATCH,
        f"The group {group} has lost its offset of {partition}: it was deleted, or has expired.",
        "Commit the offset and the metadata that the partition's newest changelog names; see "
        "materializer.offset_refresh_hours and the brokers' offsets.retention.minutes.",
    )
