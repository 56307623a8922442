"""The budget of one chunk: it limits the rows that the chunk reads and changes, and their bytes.

So neither the memory nor the transaction of a chunk grows with the width of a Cassandra partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.rows.row import Cell

if TYPE_CHECKING:
    from cassandra_storage.formats.rows.row import Row
    from materializer.rows.settings import FoldSettings


_CELL_BYTES = 10  # of a cell's times and lengths; the native core's too


class BudgetSpentError(Exception):
    """The chunk must end here. Whatever was not done is in the stored continuation, in a timer or in the record."""


class Budget:
    """A number of rows, and a number of bytes. `applied` counts the updates that are merged."""

    __slots__ = ("_settings", "applied", "bytes", "rows")

    def __init__(self, settings: FoldSettings) -> None:
        self._settings = settings
        self.applied = 0
        self.renew()

    def renew(self) -> None:
        """Start again with the full number of rows and bytes."""
        self.rows, self.bytes = self._settings.max_changes, self._settings.max_bytes

    @property
    def is_spent(self) -> bool:
        return self.rows <= 0 or self.bytes <= 0

    def spend(self, size: int, rows: int = 1) -> None:
        """Count rows that are read or written, with this many bytes."""
        self.rows -= rows
        self.bytes -= size

    def check(self) -> None:
        """Raise BudgetSpentError if the budget is spent. Call it only where no change is half done."""
        if self.is_spent:
            raise BudgetSpentError


def row_size(row: Row | None) -> int:
    """Estimate the bytes that the cells of a row take; 0 for None."""
    if row is None:
        return 0
    size = 0
    for data in row.columns.values():
        if isinstance(data, Cell):
            size += _CELL_BYTES + len(data.value)
        else:
            size += sum(_CELL_BYTES + len(cell.value) + len(cell.path or b"") for cell in data.cells)
    return size
