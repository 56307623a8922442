"""The records that decide whether data is live: DeletionTime, LivenessInfo, RangeTombstone (org.apache.cassandra.db).

These are NamedTuples and not dataclasses because one is made for every row read: a frozen dataclass costs three times
as much to build.
"""

from __future__ import annotations

from typing import NamedTuple

from cassandra_storage.formats.rows.clustering import ClusteringBound

NO_TIMESTAMP = -(2**63)  # LivenessInfo.NO_TIMESTAMP, Long.MIN_VALUE
NO_TTL = 0  # Cell.NO_TTL
NO_DELETION_TIME = 2**63 - 1  # Cell.NO_DELETION_TIME of 5.0; older versions' Integer.MAX_VALUE is read as this
EXPIRED_LIVENESS_TTL = 2**31 - 1  # LivenessInfo.EXPIRED_LIVENESS_TTL
NO_EXPIRATION_TIME = NO_DELETION_TIME  # LivenessInfo.NO_EXPIRATION_TIME


class DeletionTime(NamedTuple):
    """DeletionTime: all writes up to `marked_for_delete_at` (µs) are dead; the tombstone was made at
    `local_deletion_time` (s since the epoch).
    """

    marked_for_delete_at: int
    local_deletion_time: int

    @property
    def is_live(self) -> bool:
        return self.marked_for_delete_at == NO_TIMESTAMP and self.local_deletion_time == NO_DELETION_TIME

    def deletes(self, timestamp: int) -> bool:
        """DeletionTime.deletes(long): a write with this timestamp is dead."""
        return timestamp <= self.marked_for_delete_at

    def supersedes(self, other: DeletionTime) -> bool:
        """DeletionTime.supersedes: this one deletes more, or the same with a later local deletion time."""
        return self.marked_for_delete_at > other.marked_for_delete_at or (
            self.marked_for_delete_at == other.marked_for_delete_at
            and self.local_deletion_time > other.local_deletion_time
        )


LIVE = DeletionTime(NO_TIMESTAMP, NO_DELETION_TIME)


class LivenessInfo(NamedTuple):
    """LivenessInfo: the primary key's own liveness, given by INSERT and not by UPDATE. `timestamp` in µs, `ttl` in s,
    `local_expiration_time` in s since the epoch.
    """

    timestamp: int
    ttl: int = NO_TTL
    local_expiration_time: int = NO_EXPIRATION_TIME

    @property
    def is_empty(self) -> bool:
        return self.timestamp == NO_TIMESTAMP

    def is_live(self, now: int) -> bool:
        """LivenessInfo.isLive at `now` (s since the epoch)."""
        if self.timestamp == NO_TIMESTAMP or self.ttl == EXPIRED_LIVENESS_TTL:
            return False
        return self.ttl == NO_TTL or now < self.local_expiration_time


NO_LIVENESS = LivenessInfo(NO_TIMESTAMP)  # LivenessInfo.EMPTY


class RowDeletion(NamedTuple):
    """Row.Deletion: a row's own deletion; a shadowable one (of views) is undone by a newer row liveness."""

    time: DeletionTime
    is_shadowable: bool = False


NO_ROW_DELETION = RowDeletion(LIVE)  # Row.Deletion.LIVE


class RangeTombstone(NamedTuple):
    """RangeTombstone: `deletion` for all rows between two bounds of one partition."""

    start: ClusteringBound
    end: ClusteringBound
    deletion: DeletionTime
