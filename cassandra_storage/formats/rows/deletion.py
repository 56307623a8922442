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
    """DeletionTime: the deletion of what was written up to a time."""

    # All writes up to this timestamp, in µs, are dead.
    marked_for_delete_at: int
    # The time at which the tombstone was made, in s since the epoch.
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
    """LivenessInfo: the primary key's own liveness, given by INSERT and not by UPDATE."""

    # The write timestamp in µs; NO_TIMESTAMP if there is no liveness.
    timestamp: int
    # The time to live in s; NO_TTL if it does not expire.
    ttl: int = NO_TTL
    # The time at which it expires, in s since the epoch.
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
    """Row.Deletion: a row's own deletion."""

    # The time of the deletion.
    time: DeletionTime
    # Whether a newer row liveness undoes it. Only views have such deletions.
    is_shadowable: bool = False


NO_ROW_DELETION = RowDeletion(LIVE)  # Row.Deletion.LIVE


class RangeTombstone(NamedTuple):
    """RangeTombstone: the deletion of all rows between two bounds of one Cassandra partition."""

    # The bound at which the range starts.
    start: ClusteringBound
    # The bound at which the range ends.
    end: ClusteringBound
    # The time of the deletion.
    deletion: DeletionTime
