"""Rows and the cells they hold (org.apache.cassandra.db.rows: Row, Cell, ComplexColumnData)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from cassandra_storage.formats.rows.clustering import Clustering
from cassandra_storage.formats.rows.deletion import (
    NO_DELETION_TIME,
    NO_LIVENESS,
    NO_ROW_DELETION,
    NO_TTL,
    DeletionTime,
    LivenessInfo,
    RowDeletion,
)


class Cell(NamedTuple):
    """Cell: one value of a column, or one element of a non-frozen collection or UDT."""

    # The write timestamp, in µs.
    timestamp: int
    # The value as serialized; empty for a tombstone.
    value: bytes
    # The time of the deletion or of the expiry, in s since the epoch; NO_DELETION_TIME for neither.
    local_deletion_time: int = NO_DELETION_TIME
    # The time to live, in s; NO_TTL if it does not expire.
    ttl: int = NO_TTL
    # The key of the element; None if the column has one cell.
    path: bytes | None = None

    @property
    def is_tombstone(self) -> bool:
        """AbstractCell.isTombstone."""
        return self.local_deletion_time != NO_DELETION_TIME and self.ttl == NO_TTL

    @property
    def is_expiring(self) -> bool:
        """AbstractCell.isExpiring."""
        return self.ttl != NO_TTL

    def is_live(self, now: int) -> bool:
        """AbstractCell.isLive at `now` (s since the epoch)."""
        return self.local_deletion_time == NO_DELETION_TIME or (self.ttl != NO_TTL and now < self.local_deletion_time)


class ComplexColumnData(NamedTuple):
    """ComplexColumnData: the data of a non-frozen collection or UDT."""

    # The deletion of all elements that were written before.
    deletion: DeletionTime
    # The elements, in path order.
    cells: tuple[Cell, ...]


ColumnData: TypeAlias = Cell | ComplexColumnData


class Row(NamedTuple):
    """Row: one row, or one write to it."""

    # The serialized values of the clustering columns.
    clustering: Clustering
    # The data by the name of the column, in no particular order.
    columns: Mapping[str, ColumnData]
    # The liveness that INSERT gives.
    liveness: LivenessInfo = NO_LIVENESS
    # The deletion of the whole row.
    deletion: RowDeletion = NO_ROW_DELETION

    @property
    def is_empty(self) -> bool:
        """Row.isEmpty: nothing is said about the row at all."""
        return self.liveness.is_empty and self.deletion.time.is_live and not self.columns
