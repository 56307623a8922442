"""The changes that statements with rising timestamps must give: CQL's meaning of a row, written down on one page.

A row is there if an INSERT gave it life that no deletion has taken, or if one of its columns holds a value. Static
columns are part of each row of their partition; while it has no row, they are one by themselves, without clustering.
Values are Python's: None is null, collections are set, dict and list, an empty one is null.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Image: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[Any, ...]


class Expected(NamedTuple):
    op: str
    before: Image | None
    after: Image | None


@dataclass
class Row:
    is_inserted: bool = False
    values: Image = field(default_factory=dict)


class TableModel:
    """One table whose keys begin with the partition; `columns` and `statics` are all but the primary key's.

    `changes` lists what must come for each key, in order.
    """

    def __init__(self, columns: tuple[str, ...], statics: tuple[str, ...] = ()) -> None:
        self.columns = (*columns, *statics)
        self.changes: dict[Key, list[Expected]] = {}
        self._regular = columns
        self._static_columns = statics
        self._rows: dict[Any, dict[Key, Row]] = defaultdict(dict)
        self._statics: dict[Any, Image] = defaultdict(dict)

    def insert(self, key: Key, values: Mapping[str, Any]) -> None:
        with self._noting(key[0]):
            row = self._rows[key[0]].setdefault(key, Row())
            row.is_inserted = True
            row.values.update(values)

    def update(self, key: Key, values: Mapping[str, Any]) -> None:
        """Also the DELETE of columns: values of None."""
        with self._noting(key[0]):
            self._rows[key[0]].setdefault(key, Row()).values.update(values)

    def set_static(self, partition: object, values: Mapping[str, Any]) -> None:
        with self._noting(partition):
            self._statics[partition].update(values)

    def delete(self, key: Key) -> None:
        self.delete_where(key[0], lambda other: other == key)

    def delete_where(self, partition: object, is_in: Callable[[Key], bool]) -> None:
        """DELETE of the rows of a range."""
        with self._noting(partition):
            rows = self._rows[partition]
            self._rows[partition] = {key: row for key, row in rows.items() if not is_in(key)}

    def delete_partition(self, partition: object) -> None:
        with self._noting(partition):
            self._rows[partition], self._statics[partition] = {}, {}

    def value(self, key: Key, column: str) -> Any:  # noqa: ANN401
        row = self._rows[key[0]].get(key)
        return row.values.get(column) if row else None

    def images(self, partition: object) -> dict[Key, Image]:
        """The partition as SELECT shows it, without its keys."""
        statics = _shown(self._static_columns, self._statics[partition])
        rows = {key: (row, _shown(self._regular, row.values)) for key, row in self._rows[partition].items()}
        there = {key: shown | statics for key, (row, shown) in rows.items() if row.is_inserted or _holds_any(shown)}
        if not there and _holds_any(statics):
            return {(partition, None): _shown(self._regular, {}) | statics}
        return there

    @contextmanager
    def _noting(self, partition: object) -> Iterator[None]:
        before = self.images(partition)
        yield
        after = self.images(partition)
        for key in before | after:
            old, new = before.get(key), after.get(key)
            if old != new:
                op = "c" if old is None else "d" if new is None else "u"
                self.changes.setdefault(key, []).append(Expected(op, old, new))


def _shown(columns: tuple[str, ...], values: Image) -> Image:
    return {column: None if values.get(column) in (set(), {}, []) else values.get(column) for column in columns}


def _holds_any(image: Image) -> bool:
    return any(value is not None for value in image.values())
