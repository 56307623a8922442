"""The possible readings of a mutation with dropped columns that were written in an unknown form.

A row carries no size, so that a wrong reading may succeed by chance. A reading is kept if Cassandra may have written
it: the header's columns and each column's paths are in order, and values have the length of their type. If
readings with different contents are left, the mutation is ambiguous.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cassandra_storage.formats.errors import AmbiguousError, FormatError, UnknownColumnError, UnknownTableError
from cassandra_storage.formats.rows.dropped_columns import as_if_not_dropped, cell_by_cell, without_dropped
from cassandra_storage.formats.rows.mutation import read_count
from cassandra_storage.formats.rows.partition_update import columns_of, read_partition_update
from cassandra_storage.formats.rows.row import Cell
from cassandra_storage.formats.types.marshal import (
    CqlType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    decode,
    fields,
)

if TYPE_CHECKING:
    from cassandra_storage.formats.rows.partition import PartitionUpdate
    from cassandra_storage.formats.rows.row import ColumnData
    from cassandra_storage.formats.schema.tables import TableMetadata

MOST_READINGS = 64  # of one mutation: six columns in doubt; more are not tried
_LENIENT = {"counter", "decimal", "empty", "text"}  # Cassandra has values of these that decode() refuses


class WrittenAs(Enum):
    """The known forms of a column that was a non-frozen user type before it was dropped, or may have been."""

    CELLS = "cells"  # it was, and has not been added again
    EITHER = "either"


Doubts: TypeAlias = Mapping[bytes, Mapping[str, WrittenAs]]
"""The columns in doubt by the 16 bytes of their table's id, and their names."""


class _Reading(NamedTuple):
    cells: Mapping[bytes, frozenset[str]]
    content: tuple[object, ...]


class Readings:
    """Finds how mutations were written. `tables`: all known tables by their ids, as for read_mutation."""

    def __init__(self, tables: Mapping[bytes, TableMetadata], doubts: Doubts) -> None:
        self._tables = tables
        self._doubts = doubts
        self._variants: dict[tuple[bytes, frozenset[str]], TableMetadata] = {}
        self._complete: dict[tuple[bytes, frozenset[str]], TableMetadata] = {}

    def concern(self, mutation: bytes) -> bool:
        """Return False if the mutation certainly has no table with columns in doubt."""
        return any(table_id in mutation for table_id in self._doubts)

    def find_tables(self, mutation: bytes, messaging_version: int) -> Mapping[bytes, TableMetadata]:
        """The tables, by their ids, that must be read with other columns than the known ones: see `cell_by_cell`.

        AmbiguousError if readings with different contents are left; errors as read_mutation if none is.
        """
        search = _Search(mutation, messaging_version, self._tables, self._doubts, self)
        readings = search.run(is_known_trusted=True) or search.run(is_known_trusted=False)
        if not readings:
            assert search.error is not None
            raise search.error
        if any(reading.content != readings[0].content for reading in readings):
            names = sorted({name for reading in readings for columns in reading.cells.values() for name in columns})
            raise AmbiguousError(f"two readings fit, with the dropped columns {', '.join(names)} frozen or not")
        return {table_id: self.variant(table_id, names) for table_id, names in readings[0].cells.items()}

    def variant(self, table_id: bytes, names: frozenset[str]) -> TableMetadata:
        """The table with these columns cell by cell; one object for each."""
        known = self._tables[table_id]
        if not names:
            return known
        key = (table_id, names)
        if key not in self._variants:
            self._variants[key] = cell_by_cell(known, names)
        return self._variants[key]

    def complete(self, table_id: bytes, names: frozenset[str]) -> TableMetadata:
        """The variant that reads the cells of dropped columns too; one object for each."""
        key = (table_id, names)
        if key not in self._complete:
            self._complete[key] = as_if_not_dropped(self.variant(*key))
        return self._complete[key]


class _Search:
    """Reads one update after the other; each reading of an update may end elsewhere. `error`: of the first
    reading, or of the first that meets an unknown table or column: a newer schema may know it.
    """

    def __init__(
        self,
        mutation: bytes,
        messaging_version: int,
        tables: Mapping[bytes, TableMetadata],
        doubts: Doubts,
        variants: Readings,
    ) -> None:
        self._mutation = mutation
        self._version = messaging_version
        self._tables = tables
        self._doubts = doubts
        self._variants = variants
        self._is_known_trusted = True
        self._tried = 0
        self.error: FormatError | None = None

    def run(self, *, is_known_trusted: bool) -> list[_Reading]:
        """All readings; if `is_known_trusted`, only those with what is known to be cells read as cells."""
        self._is_known_trusted = is_known_trusted
        self._tried = 0
        count, pos = read_count(self._mutation)
        return list(self._read(pos, count))

    def _read(self, pos: int, left: int) -> Iterator[_Reading]:
        if not left:
            if pos == len(self._mutation):
                yield _Reading({}, ())
            else:
                self._note(FormatError("bytes after a mutation's end", position=pos))
            return
        table_id = self._mutation[pos : pos + 16]
        try:
            choices = list(self._choices(pos, table_id))
        except FormatError as error:
            self._note(error)
            return
        for names in choices:
            self._count()
            try:
                content, end = self._read_update(pos, table_id, names)
            except FormatError as error:
                self._note(error)
                continue
            for rest in self._read(end, left - 1):
                cells = {table_id: names, **rest.cells} if names else rest.cells
                yield _Reading(cells, (content, *rest.content))

    def _note(self, error: FormatError) -> None:
        if self.error is None or (_is_unknown(error) and not _is_unknown(self.error)):
            self.error = error

    def _count(self) -> None:
        self._tried += 1
        if self._tried > MOST_READINGS:
            raise AmbiguousError(f"more than {MOST_READINGS} readings, with dropped columns frozen or not")

    def _choices(self, pos: int, table_id: bytes) -> Iterator[frozenset[str]]:
        """The sets of columns that may be cells; the smallest first."""
        doubts = self._doubts.get(table_id, {})
        named = {layout.name for columns in columns_of(self._mutation, pos, self._tables) for layout in columns.layouts}
        doubtful = sorted(named & doubts.keys())
        if len(doubtful) >= MOST_READINGS.bit_length():
            raise AmbiguousError(f"{len(doubtful)} dropped columns in one update may be frozen or not")
        certain = {name for name in doubtful if self._is_known_trusted and doubts[name] is WrittenAs.CELLS}
        for size in range(len(doubtful) + 1):
            for names in combinations(doubtful, size):
                if certain.issubset(names):
                    yield frozenset(names)

    def _read_update(self, pos: int, table_id: bytes, names: frozenset[str]) -> tuple[object, int]:
        """(the content, the position after it)."""
        if not self._doubts.get(table_id):
            update, end = read_partition_update(self._mutation, pos, self._version, self._tables)
            return update, end
        table = self._variants.variant(table_id, names)
        written = self._variants.complete(table_id, names)
        update, end = read_partition_update(self._mutation, pos, self._version, {table_id: written})
        _check_order(self._mutation, pos, written)
        _check_values(update, written)
        rows = (without_dropped(row, table) for row in update.rows)
        static_row = update.static_row and without_dropped(update.static_row, table)
        content = update._replace(
            table=self._tables[table_id],
            static_row=None if static_row is None or static_row.is_empty else static_row,
            rows=tuple(row for row in rows if not row.is_empty),
        )
        return content, end


def _is_unknown(error: FormatError) -> bool:
    return isinstance(error, UnknownTableError | UnknownColumnError)


def _check_order(mutation: bytes, pos: int, table: TableMetadata) -> None:
    """Simple columns come before complex ones, each by name: see schema_rows.in_order."""
    in_table = (table.static_columns, table.regular_columns)
    for columns, ordered in zip(columns_of(mutation, pos, {table.id.bytes: table}), in_table, strict=True):
        places = {column.name: place for place, column in enumerate(ordered)}
        if any(places[one.name] >= places[other.name] for one, other in pairwise(columns.layouts)):
            raise FormatError("columns out of order", position=pos)


def _check_values(update: PartitionUpdate, table: TableMetadata) -> None:
    types = {column.name: column.type for column in table.static_columns + table.regular_columns}
    for row in (*((update.static_row,) if update.static_row else ()), *update.rows):
        for name, data in row.columns.items():
            _check_column(types[name], data)


def _check_column(column_type: CqlType, data: ColumnData) -> None:
    if isinstance(data, Cell):
        _check_cell(column_type, data)
        return
    paths = [cell.path or b"" for cell in data.cells]
    match column_type:
        case UserType(_, _, _, types, _):
            _check_fields(paths, len(types))
        case MapType(keys, values, _):
            _check_paths(keys, paths)
            for cell in data.cells:
                _check_cell(values, cell)
        case SetType(of, _):
            _check_paths(of, paths)
        case ListType(of, _):
            _check_paths(NativeType("timeuuid"), paths)
            for cell in data.cells:
                _check_cell(of, cell)


def _check_fields(paths: list[bytes], count: int) -> None:
    """UserType.cellPathForField: rising positions of 2 bytes. `count` is 0 if it is not known."""
    if any(len(path) != 2 or (count and int.from_bytes(path, "big") >= count) for path in paths):
        raise FormatError("a field that a user type does not have")
    if any(one >= other for one, other in pairwise(paths)):
        raise FormatError("the fields of a user type are out of order")


def _check_paths(path_type: CqlType, paths: list[bytes]) -> None:
    if len(set(paths)) != len(paths):
        raise FormatError("a collection has two elements with one path")
    for path in paths:
        _check_value(path_type, path)


def _check_cell(value_type: CqlType, cell: Cell) -> None:
    if cell.is_tombstone:
        if cell.value:
            raise FormatError("a tombstone has a value")
        return
    _check_value(value_type, cell.value)


def _check_value(value_type: CqlType, value: bytes) -> None:
    """Raise FormatError for what Cassandra never takes for a value of this type."""
    match value_type:
        case NativeType(name) if name not in _LENIENT:
            decode(value_type, value)
        case TupleType(types) | UserType(_, _, _, types, _):
            for field_type, field in zip(types, fields(value, len(types)), strict=True):
                if field is not None:
                    _check_value(field_type, field)
