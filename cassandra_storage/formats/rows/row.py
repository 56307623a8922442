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
    """Cell: one value of a column, or one element of a non-frozen collection or UDT (then `path` is its key).

    `timestamp` in µs; `local_deletion_time` and the expiry it stands for in s since the epoch; `ttl` in s; `value` as
    serialized (empty for a tombstone).
    """

    timestamp: int
    value: bytes
    local_deletion_time: int = NO_DELETION_TIME
    ttl: int = NO_TTL
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
    """ComplexColumnData: a non-frozen collection or UDT: its own deletion and its cells in path order."""

    deletion: DeletionTime
    cells: tuple[Cell, ...]


ColumnData: TypeAlias = Cell | ComplexColumnData


class Row(NamedTuple):
    """Row: `columns` maps a column's name to its data, in no particular order."""

    clustering: Clustering
    columns: Mapping[str, ColumnData]
    liveness: LivenessInfo = NO_LIVENESS
    deletion: RowDeletion = NO_ROW_DELETION

    @property
    def is_empty(self) -> bool:
        """Row.isEmpty: nothing is said about the row at all."""
        return self.liveness.is_empty and self.deletion.time.is_live and not self.columns
