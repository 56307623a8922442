"""Cassandra's reconciliation: which of two writes to the same cell or row wins.

Pure functions after org.apache.cassandra.db.rows.Cells (reconcile), Row.Merger and LivenessInfo.supersedes of 4.0, 4.1
and 5.0, which have the same rules. They apply to 3.11 too, which resolves ties differently (decision 0007). Each is
commutative, associative and idempotent, so that the order in which replicas' copies arrive does not matter. The
exceptions are Cassandra's own: counters that are deleted, counters' local shards, which are added, and shadowable
deletions, which no supported release writes (they are from before CASSANDRA-11500).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.rows.byte_comparable import path_encoder
from cassandra_storage.formats.rows.deletion import (
    EXPIRED_LIVENESS_TTL,
    LIVE,
    NO_DELETION_TIME,
    NO_LIVENESS,
    NO_ROW_DELETION,
    DeletionTime,
    LivenessInfo,
)
from cassandra_storage.formats.rows.row import Cell, ColumnData, ComplexColumnData, Row
from cassandra_storage.formats.types import counter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cassandra_storage.formats.schema.tables import ColumnMetadata


def reconcile(left: Cell, right: Cell, *, is_counter: bool = False) -> Cell:
    """Cells.reconcile: the winner of two cells of one column and path (`left` if they are equal), or the merged
    counter.
    """
    if is_counter and not (left.is_tombstone and right.is_tombstone):
        return _resolve_counter(left, right)
    if left.timestamp != right.timestamp:
        return left if left.timestamp > right.timestamp else right
    return _resolve_tie(left, right)


def _resolve_tie(left: Cell, right: Cell) -> Cell:
    """The part of Cells.resolveRegular for two cells of one timestamp."""
    left_ends = left.local_deletion_time != NO_DELETION_TIME
    right_ends = right.local_deletion_time != NO_DELETION_TIME
    if left_ends != right_ends:
        return left if left_ends else right
    if left.is_expiring != right.is_expiring:
        return right if left.is_expiring else left
    if left.local_deletion_time != right.local_deletion_time:
        return left if left.local_deletion_time > right.local_deletion_time else right
    if left.ttl != right.ttl:
        return left if left.ttl < right.ttl else right
    return left if left.value >= right.value else right


def _reconcile_paths(left: Cell, right: Cell) -> Cell:
    """reconcile for cells of a complex column, whose paths may be two spellings of one, such as 1.0 and 1.00 in a
    set<decimal>: where nothing else decides the larger one stays, in any order.
    """
    if left.path != right.path and (left.path or b"") < (right.path or b""):
        left, right = right, left
    return reconcile(left, right)


def _resolve_counter(left: Cell, right: Cell) -> Cell:
    """Cells.resolveCounter: a tombstone wins whatever its timestamp (CASSANDRA-7346), contexts merge."""
    if left.is_tombstone or right.is_tombstone:
        return left if left.is_tombstone else right
    if not left.value or not right.value:
        if bool(left.value) != bool(right.value):
            return right if left.value else left
        return left if left.timestamp > right.timestamp else right
    merged = counter.merge_contexts(left.value, right.value)
    return left._replace(value=merged, timestamp=max(left.timestamp, right.timestamp))


def supersedes(left: LivenessInfo, right: LivenessInfo) -> bool:
    """LivenessInfo.supersedes, with ExpiredLivenessInfo, the primary key's tombstone that only views make."""
    if left.timestamp != right.timestamp:
        return left.timestamp > right.timestamp
    left_expired, right_expired = left.ttl == EXPIRED_LIVENESS_TTL, right.ttl == EXPIRED_LIVENESS_TTL
    if left_expired != right_expired:
        return left_expired
    left_expires, right_expires = left.ttl != 0, right.ttl != 0
    if left_expires != right_expires:
        return left_expires
    return left.local_expiration_time > right.local_expiration_time or (
        left.local_expiration_time == right.local_expiration_time and left.ttl < right.ttl
    )


class RowMerger:
    """Row.Merger for the rows of one table; `columns` are all columns that a row may hold, by name."""

    __slots__ = ("_columns", "_is_counter", "_path_keys")

    def __init__(self, columns: Mapping[str, ColumnMetadata], *, is_counter: bool) -> None:
        self._columns = columns
        self._is_counter = is_counter
        self._path_keys: dict[str, Callable[[bytes], bytes]] = {}

    def merge(self, rows: Iterable[Row], active: DeletionTime = LIVE) -> Row:
        """The merge of versions of one row (at least one) under the deletion that is `active` over it.

        What a deletion shadows is left out; the result may be empty (`Row.is_empty`). The clustering is the first
        row's.
        """
        rows = tuple(rows)
        liveness, deletion = NO_LIVENESS, NO_ROW_DELETION
        for row in rows:
            if supersedes(row.liveness, liveness):
                liveness = row.liveness
            if row.deletion.time.supersedes(deletion.time):
                deletion = row.deletion
        if deletion.is_shadowable and liveness.timestamp > deletion.time.marked_for_delete_at:
            deletion = NO_ROW_DELETION
        if deletion.time.supersedes(active):
            active = deletion.time
        else:
            deletion = NO_ROW_DELETION
        if active.deletes(liveness.timestamp):
            liveness = NO_LIVENESS
        return Row(rows[0].clustering, self._merge_columns(rows, active), liveness, deletion)

    def _merge_columns(self, rows: tuple[Row, ...], active: DeletionTime) -> dict[str, ColumnData]:
        merged: dict[str, ColumnData] = {}
        for row in rows:
            for name, data in row.columns.items():
                present = merged.get(name)
                column: ColumnData | None
                if isinstance(data, Cell):
                    assert not isinstance(present, ComplexColumnData)
                    column = self._merge_simple(present, data, active)
                else:
                    assert not isinstance(present, Cell)
                    column = self._merge_complex(name, present, data, active)
                if column is not None:
                    merged[name] = column
        return merged

    def _merge_simple(self, present: Cell | None, cell: Cell, active: DeletionTime) -> Cell | None:
        if active.deletes(cell.timestamp):
            return present
        return cell if present is None else reconcile(present, cell, is_counter=self._is_counter)

    def _merge_complex(
        self, name: str, present: ComplexColumnData | None, data: ComplexColumnData, active: DeletionTime
    ) -> ComplexColumnData | None:
        deletion = data.deletion
        if present is not None and present.deletion.supersedes(deletion):
            deletion = present.deletion
        if deletion.supersedes(active):
            active = deletion
        else:
            deletion = LIVE
        cells = self._merge_cells(name, present.cells if present is not None else (), data.cells, active)
        return ComplexColumnData(deletion, cells) if cells or not deletion.is_live else None

    def _merge_cells(
        self, name: str, left: tuple[Cell, ...], right: tuple[Cell, ...], active: DeletionTime
    ) -> tuple[Cell, ...]:
        """The cells that are not shadowed, by path in the path comparator's order."""
        path_key = self._path_keys.get(name)
        if path_key is None:
            path_key = self._path_keys[name] = path_encoder(self._columns[name].type)
        by_path: dict[bytes, Cell] = {}
        for cell in left + right:
            if active.deletes(cell.timestamp):
                continue
            assert cell.path is not None
            key = path_key(cell.path)
            present = by_path.get(key)
            by_path[key] = cell if present is None else _reconcile_paths(present, cell)
        return tuple(by_path[key] for key in sorted(by_path))


def largest_timestamp(row: Row) -> int:
    """The largest write timestamp (µs) that anything in the row carries."""
    largest = max(row.liveness.timestamp, row.deletion.time.marked_for_delete_at)
    for data in row.columns.values():
        if isinstance(data, Cell):
            largest = max(largest, data.timestamp)
        else:
            largest = max(largest, data.deletion.marked_for_delete_at, *(cell.timestamp for cell in data.cells))
    return largest
