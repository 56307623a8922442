"""How much one chunk may look at and change: neither memory nor a transaction grows with a partition's width."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.rows import Cell

if TYPE_CHECKING:
    from cassandra_storage.rows import Row
    from materializer.rows.settings import FoldRules


class OverBudgetError(Exception):
    """These records are too many for one chunk; the argument says how many of their updates were not."""


class CutShortError(Exception):
    """The chunk ends here. What it has done is whole, and the state says where the next one goes on."""


class Budget:
    """So many rows, and so many bytes of them. `can_cut` tells what is done once it is spent: end the chunk there, or
    give it up, to fold fewer records. `applied` counts the updates that are done.
    """

    __slots__ = ("_bytes", "_rules", "applied", "can_cut", "rows")

    def __init__(self, rules: FoldRules, *, can_cut: bool) -> None:
        self._rules = rules
        self.applied = 0
        self.renew(can_cut=can_cut)

    def renew(self, *, can_cut: bool) -> None:
        self.rows, self._bytes = self._rules.max_changes, self._rules.max_bytes
        self.can_cut = can_cut

    @property
    def is_spent(self) -> bool:
        return self.rows <= 0 or self._bytes <= 0

    def spend(self, size: int, rows: int = 1) -> None:
        """For rows that are read or written, of so many bytes."""
        self.rows -= rows
        self._bytes -= size

    def check(self) -> None:
        """End the chunk if this is spent: called where nothing is half done."""
        if self.is_spent:
            self.cut()

    def cut(self) -> None:
        """OverBudgetError or CutShortError."""
        raise CutShortError if self.can_cut else OverBudgetError(self.applied)


def row_size(row: Row | None) -> int:
    """About how many bytes the values of a row have."""
    if row is None:
        return 0
    size = 0
    for data in row.columns.values():
        if isinstance(data, Cell):
            size += len(data.value)
        else:
            size += sum(len(cell.value) + len(cell.path or b"") for cell in data.cells)
    return size
