"""Computes the changes of statements and schema changes with rising timestamps, one for one.

`ExpectedTable` holds the rows that SELECT would show, and lists a change for each row whose image a step changes. It
knows nothing of a publisher or a job: a history does not depend on who was stopped while it was written.
"""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import random
    from collections.abc import Hashable, Iterator, Mapping

Plain: TypeAlias = "Hashable"
Image: TypeAlias = "tuple[tuple[str, Plain], ...]"
Key: TypeAlias = "tuple[int, int | None]"
Shape: TypeAlias = Literal["scalar", "list", "set", "map", "record"]


class Kind(NamedTuple):
    """A column's type."""

    # The CQL text. Of a record, `$t` in it is the user type.
    cql: str
    # The shape of the values.
    shape: Shape
    # Whether a record or collection is one cell.
    is_frozen: bool = True

    def value(self, pick: random.Random) -> Plain:
        """Return one of few values, so that a write often changes nothing."""
        match self.shape:
            case "list":
                return tuple(pick.choice((1, 2)) for _ in range(pick.randint(0, 2)))
            case "set":
                return tuple(sorted(pick.sample(("a", "b", "c"), pick.randint(0, 2))))
            case "map":
                return tuple(
                    sorted((name, pick.choice((1, 2))) for name in pick.sample(("a", "b"), pick.randint(0, 2)))
                )
            case "record":
                return (pick.choice((1, 2)), pick.choice(("x", None)))
        return pick.choice((1, 2, 3)) if self.cql == "int" else pick.choice(("x", "it's", "é"))

    def literal(self, value: Any, fields: tuple[str, ...]) -> str:  # noqa: ANN401 - of the type
        """Return the CQL of a value; `fields` are the user type's. The value has the first ones."""
        match self.shape:
            case _ if value is None:
                return "null"
            case "list":
                return f"[{', '.join(map(str, value))}]"
            case "set":
                return "{" + ", ".join(map(_quoted, value)) + "}"
            case "map":
                return "{" + ", ".join(f"{_quoted(name)}: {item}" for name, item in value) + "}"
            case "record":
                texts = ("null" if item is None else _quoted(item) for item in value)
                return "{" + ", ".join(f"{name}: {text}" for name, text in zip(fields, texts, strict=False)) + "}"
        return _quoted(value)

    def plain(self, value: Any) -> Plain:  # noqa: ANN401 - as Avro or the driver has it
        """Return a value that compares. A change topic has maps and user types as JSON text by default."""
        if self.shape != "scalar" and isinstance(value, str):
            value = json.loads(value)
        match self.shape:
            case _ if value is None:
                return None
            case "list":
                return tuple(value)
            case "set":
                return tuple(sorted(value))
            case "map":
                return tuple(sorted(value.items()))
            case "record":
                return _without_nulls(tuple(value.values() if isinstance(value, dict) else value))
        plain: Plain = value
        return plain

    def shown(self, value: Any) -> Plain:  # noqa: ANN401 - of the type
        """Return what SELECT shows: an empty collection of cells is null, a field that is not there is null."""
        if self.shape == "record":
            found = _without_nulls(value)
            return found if found or self.is_frozen else None
        if self.shape in {"list", "set", "map"} and not self.is_frozen:
            return value or None
        plain: Plain = value
        return plain


def _quoted(value: object) -> str:
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


def _without_nulls(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values without the nulls at the end: a type has more fields after ALTER TYPE."""
    while values and values[-1] is None:
        values = values[:-1]
    return values


INT, TEXT = Kind("int", "scalar"), Kind("text", "scalar")
LIST, SET, MAP = (
    Kind("list<int>", "list", is_frozen=False),
    Kind("set<text>", "set", is_frozen=False),
    Kind("map<text, int>", "map", is_frozen=False),
)
FROZEN_LIST = Kind("frozen<list<int>>", "list")
RECORD, CELLS = Kind("frozen<$t>", "record"), Kind("$t", "record", is_frozen=False)
SPARE = (INT, TEXT, LIST, SET, MAP, FROZEN_LIST)


class Column(NamedTuple):
    """A column of the table."""

    # The type.
    kind: Kind
    # Whether it is static.
    is_static: bool = False


class Cell(NamedTuple):
    """A written value."""

    # The value.
    value: Plain
    # The write timestamp, in µs.
    timestamp: int


class Expected(NamedTuple):
    """A change that must come."""

    # The op of the change message.
    op: str
    # The row before the change; None if there was none.
    before: Image | None
    # The row after the change; None if there is none.
    after: Image | None


@dataclass
class Row:
    """A row that SELECT would show."""

    # Whether an INSERT made it, so that it is there without any cell.
    is_inserted: bool = False
    # The cells, by the name of the column.
    cells: dict[str, Cell] = field(default_factory=dict)


class ExpectedTable:
    """The table `name`, with the key (`key`[0], `key`[1]), or `key`[0] alone.

    `columns` are those that the table has now; cells of others are hidden.
    """

    def __init__(self, name: str, key: tuple[str, ...], columns: Mapping[str, Column]) -> None:
        self.name = name
        self.key = key
        self.key_names = set(key)  # that it has and has had
        self.columns = dict(columns)
        self.kinds = {name: column.kind for name, column in columns.items()}  # of columns that it has and has had
        self.events: dict[Key, list[Expected]] = defaultdict(list)
        self._rows: dict[int, dict[int | None, Row]] = defaultdict(dict)
        self._statics: dict[int, dict[str, Cell]] = defaultdict(dict)

    def write(self, at: Key, values: Mapping[str, Plain], timestamp: int, *, is_insert: bool) -> None:
        """An INSERT or UPDATE of a row; None deletes a column."""
        with self._noting(at[0]):
            row = self._rows[at[0]].setdefault(at[1], Row())
            row.is_inserted |= is_insert
            row.cells |= {name: Cell(value, timestamp) for name, value in values.items()}

    def write_static(self, partition: int, values: Mapping[str, Plain], timestamp: int) -> None:
        with self._noting(partition):
            self._statics[partition] |= {name: Cell(value, timestamp) for name, value in values.items()}

    def delete_row(self, at: Key) -> None:
        with self._noting(at[0]):
            self._rows[at[0]].pop(at[1], None)

    def delete_partition(self, partition: int) -> None:
        with self._noting(partition):
            self._rows.pop(partition, None)
            self._statics.pop(partition, None)

    def delete_all(self) -> None:
        """TRUNCATE, or DROP TABLE."""
        with self._noting():
            self._rows.clear()
            self._statics.clear()

    def value(self, at: Key, name: str) -> Any:  # noqa: ANN401 - of the column's type
        row = self._rows[at[0]].get(at[1])
        cell = row.cells.get(name) if row else None
        return cell.value if cell else None

    def add_column(self, name: str, column: Column) -> None:
        """Cells that are newer than the last DROP of the column are there again."""
        with self._noting():
            self.columns[name] = column
            self.kinds[name] = column.kind

    def rename_key(self, old: str, new: str) -> None:
        self.key = tuple(new if name == old else name for name in self.key)
        self.key_names.add(new)

    def drop_column(self, name: str, until: int) -> None:
        """Cells up to the time `until` are gone, newer ones hidden."""
        with self._noting():
            for cells in self._all_cells():
                if name in cells and cells[name].timestamp <= until:
                    del cells[name]
            self.columns.pop(name)

    def images(self, partition: int) -> dict[Key, Image]:
        """Return the rows that SELECT shows; static columns without a row are one by themselves."""
        statics = self._shown(self._statics.get(partition, {}), is_static=True)
        found: dict[Key, Image] = {}
        for clustering, row in self._rows.get(partition, {}).items():
            values = self._shown(row.cells, is_static=False)
            if row.is_inserted or values:
                found[partition, clustering] = tuple(sorted({**values, **statics}.items()))
        if statics and not found:
            found[partition, None] = tuple(sorted(statics.items()))
        return found

    def rows(self) -> dict[Key, Image]:
        return {key: image for partition in self._partitions() for key, image in self.images(partition).items()}

    def _shown(self, cells: Mapping[str, Cell], *, is_static: bool) -> dict[str, Plain]:
        """The values that are not null, of the columns that there are."""
        found = {}
        for name, cell in cells.items():
            column = self.columns.get(name)
            if column is not None and column.is_static == is_static and cell.value is not None:
                shown = column.kind.shown(cell.value)
                if shown is not None:
                    found[name] = shown
        return found

    def _partitions(self) -> list[int]:
        return sorted({*self._rows, *self._statics})

    def _all_cells(self) -> Iterator[dict[str, Cell]]:
        yield from self._statics.values()
        for rows in self._rows.values():
            yield from (row.cells for row in rows.values())

    @contextmanager
    def _noting(self, partition: int | None = None) -> Iterator[None]:
        """List the change of each row whose image is another one afterwards."""
        partitions = self._partitions() if partition is None else [partition]
        before = {key: image for partition in partitions for key, image in self.images(partition).items()}
        yield
        after = {key: image for partition in partitions for key, image in self.images(partition).items()}
        for key in sorted(before.keys() | after.keys(), key=repr):
            old, new = before.get(key), after.get(key)
            if old != new:
                op = "c" if old is None else "d" if new is None else "u"
                self.events[key].append(Expected(op, old, new))
