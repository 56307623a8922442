"""Cassandra 3.11's rules where they are not 4.0's, written down to tell such merges from true differences.

4.0, 4.1 and 5.0 have one set of rules (cassandra_storage.formats.merge.reconciliation). In 3.11 (db.Conflicts,
LivenessInfo.supersedes):
- of two cells of one timestamp the one that is dead by the clock wins, so that expiring cells change sides (4.0:
  CASSANDRA-14592); then the larger value, its bytes taken as signed; then the later local deletion time, and never the
  TTL;
- of two livenesses that expire at one second neither supersedes the other, whatever their TTLs.
Where that leaves a tie, the one that is met first or last stays: of two cells that differ in their TTL, of a tombstone
and an expired cell of one second without a value. `without_ties` makes such rows equal.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest import mock

from cassandra_storage.formats.merge import reconciliation as merge
from cassandra_storage.formats.rows.deletion import EXPIRED_LIVENESS_TTL, NO_TTL
from cassandra_storage.formats.rows.row import ComplexColumnData

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cassandra_storage.formats.rows.deletion import LivenessInfo
    from cassandra_storage.formats.rows.row import Cell, ColumnData, Row

_reconcile = merge.reconcile


@contextmanager
def of_3_11(now: int) -> Iterator[None]:
    """cassandra_storage.formats.merge.reconciliation with 3.11's rules at `now` (s)."""

    def reconcile(left: Cell, right: Cell, *, is_counter: bool = False) -> Cell:
        if is_counter and not (left.is_tombstone and right.is_tombstone):
            return _reconcile(left, right, is_counter=True)
        return _resolve_regular(left, right, now)

    with mock.patch.object(merge, "reconcile", reconcile), mock.patch.object(merge, "supersedes", _supersedes):
        yield


def without_ties(row: Row, now: int) -> Row:
    """The row without what 3.11 never looks at when it merges."""
    columns = {name: _without_ttls(data, now) for name, data in row.columns.items()}
    liveness = row.liveness
    if liveness.ttl not in (NO_TTL, EXPIRED_LIVENESS_TTL):
        liveness = liveness._replace(ttl=1)
    return row._replace(columns=columns, liveness=liveness)


def _without_ttls(data: ColumnData, now: int) -> ColumnData:
    if isinstance(data, ComplexColumnData):
        return data._replace(cells=tuple(_without_ttl(cell, now) for cell in data.cells))
    return _without_ttl(data, now)


def _without_ttl(cell: Cell, now: int) -> Cell:
    return cell._replace(ttl=int(cell.is_expiring and cell.is_live(now)))


def _resolve_regular(left: Cell, right: Cell, now: int) -> Cell:
    if left.timestamp != right.timestamp:
        return left if left.timestamp > right.timestamp else right
    if left.is_live(now) != right.is_live(now):
        return right if left.is_live(now) else left
    if left.value != right.value:
        return left if _signed(left.value) > _signed(right.value) else right
    return right if left.local_deletion_time < right.local_deletion_time else left


def _signed(value: bytes) -> bytes:
    """Bytes that compare as ByteBuffer.compareTo does."""
    return bytes(byte ^ 0x80 for byte in value)


def _supersedes(left: LivenessInfo, right: LivenessInfo) -> bool:
    if left.timestamp != right.timestamp:
        return left.timestamp > right.timestamp
    left_expired, right_expired = left.ttl == EXPIRED_LIVENESS_TTL, right.ttl == EXPIRED_LIVENESS_TTL
    if left_expired != right_expired:
        return left_expired
    if bool(left.ttl) == bool(right.ttl):
        return left.local_expiration_time > right.local_expiration_time
    return bool(left.ttl)
