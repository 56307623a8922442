"""What must come out of statements with rising timestamps: CQL's meaning of a row, written down on one page.

A row is there if an INSERT gave it life that no deletion has taken, or if one of its columns holds a value. Values are
Python's: None is null, collections are set, dict and list, an empty one is null.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Image: TypeAlias = dict[str, Any]


class Expected(NamedTuple):
    op: str
    before: Image | None
    after: Image | None


@dataclass
class Row:
    is_inserted: bool = False
    values: Image = field(default_factory=dict)


class TableModel:
    """One table: `columns` are all but the primary key's. `changes` lists what must come for each key, in order."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self.rows: dict[tuple[Any, ...], Row] = {}
        self.changes: dict[tuple[Any, ...], list[Expected]] = {}

    def insert(self, key: tuple[Any, ...], values: Mapping[str, Any]) -> None:
        before = self.image(key)
        row = self.rows.setdefault(key, Row())
        row.is_inserted = True
        row.values.update(values)
        self._note(key, before)

    def update(self, key: tuple[Any, ...], values: Mapping[str, Any]) -> None:
        """Also the DELETE of columns: values of None."""
        before = self.image(key)
        self.rows.setdefault(key, Row()).values.update(values)
        self._note(key, before)

    def delete(self, key: tuple[Any, ...]) -> None:
        before = self.image(key)
        self.rows.pop(key, None)
        self._note(key, before)

    def delete_where(self, prefix: tuple[Any, ...]) -> None:
        """DELETE of all rows whose key starts so: a partition's."""
        for key in [key for key in self.rows if key[: len(prefix)] == prefix]:
            self.delete(key)

    def value(self, key: tuple[Any, ...], column: str) -> Any:  # noqa: ANN401
        row = self.rows.get(key)
        return row.values.get(column) if row else None

    def image(self, key: tuple[Any, ...]) -> Image | None:
        """The row as SELECT shows it, without its key."""
        row = self.rows.get(key)
        if row is None:
            return None
        shown = {column: row.values.get(column) or _scalar(row.values.get(column)) for column in self.columns}
        return shown if row.is_inserted or any(value is not None for value in shown.values()) else None

    def _note(self, key: tuple[Any, ...], before: Image | None) -> None:
        after = self.image(key)
        if before != after:
            op = "c" if before is None else "d" if after is None else "u"
            self.changes.setdefault(key, []).append(Expected(op, before, after))


def _scalar(value: Any) -> Any:  # noqa: ANN401
    """A false value as it is, but for empty collections, which are null."""
    return None if isinstance(value, (set, dict, list)) else value
