"""Writes that have expired before they arrive, for example after an outage longer than their TTL.

Such a write changes its row twice: its content is shown, and expires at once. While it is shown, the row holds it as if
it expired in the next second. This never goes beyond the mutation: what is stored are the cells as they were written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.rows.deletion import EXPIRED_LIVENESS_TTL, NO_TTL, LivenessInfo
from cassandra_storage.formats.rows.row import Cell, ColumnData

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cassandra_storage.formats.rows.row import Row


class ExpiredParts(NamedTuple):
    """The parts of a write that have expired."""

    # The expired cells with their columns' names.
    cells: frozenset[tuple[str, Cell]]
    # The row's liveness; None if that has not expired.
    liveness: LivenessInfo | None

    @property
    def seconds(self) -> set[int]:
        """When they expired, in seconds since the epoch."""
        seconds = {cell.local_deletion_time for _, cell in self.cells}
        if self.liveness is not None:
            seconds.add(self.liveness.local_expiration_time)
        return seconds

    def shown(self, row: Row, now: int) -> Row:
        """The row with those of the parts that it holds live at `now`."""

        def show(name: str, cell: Cell) -> Cell:
            return cell._replace(local_deletion_time=now + 1) if (name, cell) in self.cells else cell

        shown = _with_cells(row, show)
        if self.liveness is None or row.liveness != self.liveness:
            return shown
        return shown._replace(liveness=self.liveness._replace(local_expiration_time=now + 1))

    def hidden(self, row: Row, now: int, until: int) -> Row:
        """A row that `shown` has made, with the parts that expired by the second `until` as they were written."""
        written = {
            (name, cell._replace(local_deletion_time=now + 1)): cell
            for name, cell in self.cells
            if cell.local_deletion_time <= until
        }
        hidden = _with_cells(row, lambda name, cell: written.get((name, cell), cell))
        liveness = self.liveness
        if liveness is None or liveness.local_expiration_time > until:
            return hidden
        if row.liveness != liveness._replace(local_expiration_time=now + 1):
            return hidden
        return hidden._replace(liveness=liveness)


class ExpiredWrite(NamedTuple):
    """A row of the state that shows expired parts of a write until the end of the mutation."""

    # The row's key in the state.
    key: bytes
    # The expired parts.
    parts: ExpiredParts


def expired_parts(update: Row, stored: Row | None, now: int) -> ExpiredParts | None:
    """The parts of an update that have expired by `now` and that the stored row lacks; None if there are none.

    A part that is stored already was shown when it first arrived.
    """
    liveness = update.liveness
    has_liveness = liveness.ttl not in (NO_TTL, EXPIRED_LIVENESS_TTL) and not liveness.is_live(now)
    if not has_liveness and not _has_expired_cell(update, now):
        return None
    cells = {(name, cell) for name, cell in _cells(update) if cell.is_expiring and not cell.is_live(now)}
    if stored is not None:
        cells.difference_update(_cells(stored))
        has_liveness = has_liveness and stored.liveness != liveness
    if not cells and not has_liveness:
        return None
    return ExpiredParts(frozenset(cells), liveness if has_liveness else None)


def _has_expired_cell(row: Row, now: int) -> bool:
    """Nearly all rows have none: this must cost next to nothing."""
    for data in row.columns.values():
        for cell in (data,) if isinstance(data, Cell) else data.cells:
            if cell.ttl != NO_TTL and cell.local_deletion_time <= now:
                return True
    return False


def _cells(row: Row) -> Iterator[tuple[str, Cell]]:
    for name, data in row.columns.items():
        if isinstance(data, Cell):
            yield name, data
        else:
            for cell in data.cells:
                yield name, cell


def _with_cells(row: Row, change: Callable[[str, Cell], Cell]) -> Row:
    columns: dict[str, ColumnData] = {}
    for name, data in row.columns.items():
        if isinstance(data, Cell):
            columns[name] = change(name, data)
        else:
            columns[name] = data._replace(cells=tuple([change(name, cell) for cell in data.cells]))
    return row._replace(columns=columns)
