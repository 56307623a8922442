"""Removes from merged data what a compaction removes (org.apache.cassandra.db.partitions.PurgeFunction, DeletionPurger;
purge of db.rows: BTreeRow, ComplexColumnData, AbstractCell).

A tombstone is purgeable if it is older than gc_grace_seconds and shadows nothing outside of what is merged. A cell or
row liveness that has expired is as good as a tombstone made when it expired.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.rows.deletion import (
    LIVE,
    NO_DELETION_TIME,
    NO_LIVENESS,
    NO_ROW_DELETION,
    NO_TTL,
    DeletionTime,
)
from cassandra_storage.formats.rows.row import Cell, ColumnData, ComplexColumnData, Row
from cassandra_storage.formats.rows.unfiltered import Marker

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NO_UPPER_BOUND = 2**63  # after every timestamp


class Purger:
    """PurgeFunction for one `now` (s since the epoch).

    `oldest_unrepaired`: for a table with only_purge_repaired_tombstones, the least local deletion time (s) of its
    SSTables that are not repaired: what was deleted then or later stays (ReadCommand's rule; a compaction, which never
    takes repaired and unrepaired SSTables together, looks at all or nothing). None where the option is off.

    `before`: only tombstones whose timestamp (µs) is less are purged. CompactionController.getPurgeEvaluator takes the
    least timestamp of the memtables and of the SSTables that are not compacted. A merge of all SSTables that a flush
    has left needs no such bound: what a memtable gets later is in the commit log after the flush, so that it is
    published as a change of its own, and a snapshot only says what was there at the flush.

    Strict liveness, which only views have, is not looked at: their rows keep tombstones that a compaction would purge.
    """

    def __init__(
        self,
        now: int,
        gc_grace_seconds: int,
        *,
        oldest_unrepaired: int | None = None,
        before: int = _NO_UPPER_BOUND,
    ) -> None:
        self.now = now
        self.gc_before = now - gc_grace_seconds
        self.unrepaired = _NO_UPPER_BOUND if oldest_unrepaired is None else oldest_unrepaired
        self.before = before

    def deletion(self, time: DeletionTime) -> DeletionTime:
        """A deletion of a partition or column; LIVE if it is purgeable."""
        return LIVE if self._purges(time) else time

    def marker(self, marker: Marker) -> Marker | None:
        """PurgeFunction.applyToMarker: a boundary may become a bound; None if nothing is left."""
        close, open_ = marker
        if close is not None and self._purges(close[1]):
            close = None
        if open_ is not None and self._purges(open_[1]):
            open_ = None
        if close is None and open_ is None:
            return None
        return marker if close is marker.close and open_ is marker.open_ else Marker(close, open_)

    def row(self, row: Row) -> Row:
        """Row.purge; it may be empty. Cells that have expired become tombstones, of the time they were written."""
        liveness, deletion, columns = row.liveness, row.deletion, row.columns
        if (
            liveness.ttl != NO_TTL
            and not liveness.is_live(self.now)
            and self._should_purge(liveness.timestamp, liveness.local_expiration_time)
        ):
            liveness = NO_LIVENESS
        if deletion is not NO_ROW_DELETION and self._purges(deletion.time):
            deletion = NO_ROW_DELETION
        if not self._all_live(columns.values()):
            columns = self._columns(columns)
        if liveness is row.liveness and deletion is row.deletion and columns is row.columns:
            return row
        return Row(row.clustering, columns, liveness, deletion)

    def _purges(self, time: DeletionTime) -> bool:
        return not time.is_live and self._should_purge(*time)

    def _should_purge(self, timestamp: int, local_deletion_time: int) -> bool:
        return (
            local_deletion_time < self.gc_before and local_deletion_time < self.unrepaired and timestamp < self.before
        )

    def _all_live(self, columns: Iterable[ColumnData]) -> bool:
        """Return False if something may be deleted. It is True for nearly all rows."""
        now = self.now
        for data in columns:
            if isinstance(data, Cell):
                if data.local_deletion_time != NO_DELETION_TIME and not data.is_live(now):
                    return False
            elif data.deletion is not LIVE or any(
                cell.local_deletion_time != NO_DELETION_TIME and not cell.is_live(now) for cell in data.cells
            ):
                return False
        return True

    def _columns(self, columns: Mapping[str, ColumnData]) -> dict[str, ColumnData]:
        purged: dict[str, ColumnData] = {}
        for name, data in columns.items():
            left = self._cell(data) if isinstance(data, Cell) else self._complex(data)
            if left is not None:
                purged[name] = left
        return purged

    def _complex(self, data: ComplexColumnData) -> ComplexColumnData | None:
        deletion = self.deletion(data.deletion)
        cells = tuple(cell for cell in map(self._cell, data.cells) if cell is not None)
        return ComplexColumnData(deletion, cells) if cells or not deletion.is_live else None

    def _cell(self, cell: Cell) -> Cell | None:
        """AbstractCell.purge. An expired cell of an unrepaired SSTable stays unrepaired though its tombstone is older:
        Cassandra would purge it.
        """
        if cell.is_live(self.now):
            return cell
        if self._should_purge(cell.timestamp, cell.local_deletion_time):
            return None
        if cell.ttl == NO_TTL:
            return cell
        deleted_at = cell.local_deletion_time - cell.ttl
        if cell.local_deletion_time < self.unrepaired and self._should_purge(cell.timestamp, deleted_at):
            return None
        return Cell(cell.timestamp, b"", deleted_at, path=cell.path)
