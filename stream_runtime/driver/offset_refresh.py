"""Refreshes the committed offsets of idle shares, which brokers would otherwise delete.

Brokers delete the offset of a group that is not committed for offsets.retention.minutes (7 days by default). The driver
does this between batches.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import structlog

from cdc_common.errors.codes import CdcError
from stream_runtime.exactly_once.position import Position, check_no_command, decode
from stream_runtime.faults import NEUTRAL_FAULTS, Faults
from stream_runtime.kafka import PRODUCER_DEFAULTS, GroupPositions, driver_errors
from stream_runtime.kafka.commits import KafkaCommits

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from cdc_common.settings import KafkaSettings
    from stream_runtime.records import Share
    from stream_runtime.settings import JobSettings

_CHECK_SECONDS = 60.0
_MOST_AT_ONCE = 10  # positions that are refreshed while a batch waits
_logger = structlog.get_logger(__name__)


class _Seen(NamedTuple):
    position: Position
    since: float


class OffsetRefresh:
    """Remembers since when each share, of one partition, has had its position. Used while no batch is running."""

    def __init__(
        self,
        kafka: KafkaSettings,
        settings: JobSettings,
        faults: Faults = NEUTRAL_FAULTS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._faults = faults
        self._kafka, self._group = kafka, settings.group_id
        self._period = settings.offset_refresh_hours * 3600
        self._limits = PRODUCER_DEFAULTS._replace(transaction_seconds=settings.transaction_timeout_seconds)
        self._clock = clock
        self._next = clock()
        self._seen: dict[Share, _Seen] = {}
        self._latest: GroupPositions | None = None
        self._stable: GroupPositions | None = None

    @property
    def is_due(self) -> bool:
        return self._clock() >= self._next

    def refresh(self, shares: Collection[Share]) -> dict[Share, CdcError]:
        """Read the positions, and commit those again that have not moved for the period. The errors of shares:
        STATE_MISMATCH, for example, if a position is gone.

        CdcError KAFKA_UNREACHABLE or KAFKA_REFUSED if the group cannot be read.
        """
        now = self._clock()
        self._next = now + min(_CHECK_SECONDS, self._period / 4)
        if not shares:
            return {}
        with driver_errors(f"read the offsets of the group {self._group}"):
            found = self._positions(stable=False).read_each([share.partition for share in shares])
        errors = self._track({share: found[share.partition] for share in shares}, now)
        old = [share for share, seen in self._seen.items() if now - seen.since >= self._period]
        for share in old[:_MOST_AT_ONCE]:
            try:
                with driver_errors(f"commit the offset of {share} again"):
                    self._seen[share] = _Seen(self._commit_again(share), now)
            except CdcError as error:
                errors[share] = error
                del self._seen[share]
        if len(old) > _MOST_AT_ONCE:
            self._next = now
        return errors

    def _track(self, positions: dict[Share, Position | CdcError | None], now: float) -> dict[Share, CdcError]:
        """Remember the positions; the errors of those that cannot be read or are gone."""
        errors: dict[Share, CdcError] = {}
        for share, position in positions.items():
            seen = self._seen.get(share)
            if isinstance(position, CdcError):
                errors[share] = position
            elif position is None:
                if seen is not None:
                    errors[share] = self._faults.offset_lost(share.partition, self._group)
            elif seen is None or seen.position != position:
                self._seen[share] = _Seen(position, now)
        return errors

    def _commit_again(self, share: Share) -> Position:
        """Fence all other producers first, as a task does, so that a newer position is not overwritten.

        The share's task then finds a position that it has not committed, and opens a new producer.
        """
        partition = share.partition
        commits = KafkaCommits(self._kafka, self._group, share, self._positions(stable=True), self._limits)
        stored = commits.read()[partition]
        if stored is None:
            raise self._faults.offset_lost(partition, self._group)
        position = decode(stored.offset, stored.metadata, partition, self._faults)
        check_no_command(position, partition, self._faults)  # a command's positions must stay as they are
        position = position._replace(refreshes=position.refreshes + 1)
        commits.commit({partition: position.stored()})
        _logger.debug("offset refreshed", partition=str(partition), offset=position.offset)
        return position

    def _positions(self, *, stable: bool) -> GroupPositions:
        if stable:
            self._stable = self._stable or GroupPositions(self._kafka, self._group, self._faults)
            return self._stable
        self._latest = self._latest or GroupPositions(self._kafka, self._group, self._faults, stable=False)
        return self._latest
