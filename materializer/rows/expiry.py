"""Find when the content of a row expires, since when it is dead, and what is left of it after a purge.

Purging follows org.apache.cassandra.db.DeletionPurger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.rows.deletion import LIVE, NO_DELETION_TIME, NO_LIVENESS, NO_ROW_DELETION
from cassandra_storage.formats.rows.row import Cell, ComplexColumnData

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cassandra_storage.formats.rows.deletion import DeletionTime, LivenessInfo
    from cassandra_storage.formats.rows.row import ColumnData, Row

_MICROS = 1_000_000


class NowInSeconds(NamedTuple):
    """Cassandra's nowInSec, at which it is decided what has expired, in seconds since the epoch. Both are the same for
    a write.
    """

    # For the row before a change.
    before: int
    # For the row after the change.
    after: int


class RowTimers(NamedTuple):
    """The timers of a row, in seconds since the epoch; None is no timer."""

    # When the first live cell, or the row's own liveness, expires.
    expires: int | None = None
    # Since when the oldest tombstone or expired cell is dead (`purge_second`).
    dead_since: int | None = None


NO_TIMERS = RowTimers()


def purge_second(timestamp: int, local_deletion_time: int) -> int:
    """The second from which gc_grace counts for a tombstone: when it was made or, if that is later, the client's
    timestamp (µs). Writes that the tombstone shadows may be made until then.
    """
    return max(local_deletion_time, -(-timestamp // _MICROS), 0)


def deletion_second(deletion: DeletionTime) -> int | None:
    """purge_second of a deletion; None if there is none."""
    return None if deletion.is_live else purge_second(*deletion)


def row_timers(row: Row | None, now: int) -> RowTimers:
    """The timers of a row, or static row, as it is at `now` (s)."""
    if row is None:
        return NO_TIMERS
    mortal = [row.liveness] if row.liveness.ttl else []
    deletions = [row.deletion.time]
    cells: list[Cell] = []
    for data in row.columns.values():
        if isinstance(data, Cell):
            if data.local_deletion_time != NO_DELETION_TIME:
                cells.append(data)
        else:
            deletions.append(data.deletion)
            cells += [cell for cell in data.cells if cell.local_deletion_time != NO_DELETION_TIME]
    dead = [purge_second(*deletion) for deletion in deletions if deletion != LIVE]
    if not (dead or cells or mortal):
        return NO_TIMERS
    expires = []
    for part, timestamp, end in _ends(mortal, cells):
        if part.is_live(now):
            expires.append(end)
        else:
            dead.append(purge_second(timestamp, end))
    return RowTimers(min(expires, default=None), min(dead, default=None))


def _ends(mortal: list[LivenessInfo], cells: list[Cell]) -> Iterator[tuple[LivenessInfo | Cell, int, int]]:
    """Yield each part that expires, its write timestamp (µs) and the second at which it expires."""
    for liveness in mortal:
        yield liveness, liveness.timestamp, liveness.local_expiration_time
    for cell in cells:
        yield cell, cell.timestamp, cell.local_deletion_time


def purged(row: Row, before: int, now: int) -> Row:
    """Row.purge: the row without what has been dead, at `now`, since a second before `before`; it may be empty."""

    def is_gone(cell: Cell) -> bool:
        return not cell.is_live(now) and purge_second(cell.timestamp, cell.local_deletion_time) < before

    columns: dict[str, ColumnData] = {}
    for name, data in row.columns.items():
        if isinstance(data, Cell):
            if not is_gone(data):
                columns[name] = data
            continue
        cells = tuple(cell for cell in data.cells if not is_gone(cell))
        deletion = LIVE if _is_gone(data.deletion, before) else data.deletion
        if cells or not deletion.is_live:
            columns[name] = ComplexColumnData(deletion, cells)
    return row._replace(
        columns=columns,
        liveness=NO_LIVENESS if _has_ended(row.liveness, before, now) else row.liveness,
        deletion=NO_ROW_DELETION if _is_gone(row.deletion.time, before) else row.deletion,
    )


def _is_gone(deletion: DeletionTime, before: int) -> bool:
    since = deletion_second(deletion)
    return since is not None and since < before


def _has_ended(liveness: LivenessInfo, before: int, now: int) -> bool:
    return (
        liveness.ttl != 0
        and not liveness.is_live(now)
        and purge_second(liveness.timestamp, liveness.local_expiration_time) < before
    )
