"""Tables from the rows of system_schema (org.apache.cassandra.schema.SchemaKeyspace).

A row is a mapping from column names to values as the Python driver's dict_factory gives them: UUID for id, a set or
None for flags, a naive datetime in UTC or (some are beyond it) the milliseconds for dropped_time. Columns that a
version does not have may be missing. `altered_at`, of tables, views and types, is the write time of the row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.schema.tables import (
    BINARY_NAMES,
    VIEW,
    ColumnKind,
    ColumnMetadata,
    DroppedColumn,
    TableMetadata,
)
from cassandra_storage.formats.types.cql_types import UserTypeDefinition, parse_type
from cassandra_storage.formats.types.marshal import (
    CqlType,
    CustomType,
    ListType,
    MapType,
    SetType,
    UserType,
    user_types,
)

SchemaRow: TypeAlias = Mapping[str, Any]
_TableName: TypeAlias = tuple[str, str]
_TypeParser: TypeAlias = Callable[[str, str], CqlType]

UNREADABLE = CustomType("unreadable")
"""Stands for a type that this build cannot read, in tables whose updates can be stepped over all the same."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Parsers(NamedTuple):
    """Of the types of columns, and of dropped columns."""

    columns: _TypeParser
    dropped: _TypeParser


class UnreadableTable(NamedTuple):
    """A table (or view) that its rows do not describe in a way that this build can read."""

    # The name of the keyspace.
    keyspace: str
    # The name of the table.
    name: str
    # Whether CDC is on for it.
    cdc: bool
    # Why it cannot be read.
    reason: str
    # The table with types that are good enough to step over its updates; None if even that is not known.
    stepped_over: TableMetadata | None

    @property
    def qualified_name(self) -> str:
        """`keyspace.name`."""
        return f"{self.keyspace}.{self.name}"


class ReadTables(NamedTuple):
    """The tables of a schema."""

    # The tables that could be read, by id.
    tables: dict[UUID, TableMetadata]
    # The tables that could not be read, by id.
    unreadable: dict[UUID, UnreadableTable]


def tables_from_rows(
    tables: Iterable[SchemaRow],
    columns: Iterable[SchemaRow],
    types: Collection[SchemaRow],
    dropped_columns: Iterable[SchemaRow],
    views: Iterable[SchemaRow] = (),
) -> dict[UUID, TableMetadata]:
    """The tables (and views) that rows of system_schema's tables of these names, of 3.11 to 5.0, describe.

    FormatError names a table without a partition key (its rows were read while it was made or dropped), the table and
    column whose kind or type cannot be read, or a column that a row lacks.
    """
    read = read_each_table(tables, columns, types, dropped_columns, views)
    for unreadable in read.unreadable.values():
        raise FormatError(unreadable.reason)
    return read.tables


def read_each_table(
    tables: Iterable[SchemaRow],
    columns: Iterable[SchemaRow],
    types: Collection[SchemaRow],
    dropped_columns: Iterable[SchemaRow],
    views: Iterable[SchemaRow] = (),
) -> ReadTables:
    """Read the tables as tables_from_rows does. A table that cannot be read does not hide the others. FormatError only
    for a row without its own key.
    """
    parse = _Parsers(_type_parser(types), _parse_without_user_types)
    columns_of = _by_table(columns)
    dropped_of = _by_table(dropped_columns)
    views_of = [{**row, "table_name": _value(row, "view_name"), "flags": ("compound", VIEW)} for row in views]
    altered = {(_value(row, "keyspace_name"), _value(row, "type_name")): row.get("altered_at", 0) for row in types}
    read = ReadTables({}, {})
    for row in [*tables, *views_of]:
        table_id, name = _value(row, "id"), (_value(row, "keyspace_name"), _value(row, "table_name"))
        try:
            table = _table(name, row, columns_of[name], dropped_of[name], parse)
        except FormatError as error:
            stepped_over = _stepped_over(name, row, columns_of[name], dropped_of[name], parse)
            read.unreadable[table_id] = UnreadableTable(*name, bool(row.get("cdc")), error.reason, stepped_over)
        else:
            read.tables[table_id] = _altered_with_types(table, altered)
    return read


def _stepped_over(
    name: _TableName,
    row: SchemaRow,
    column_rows: list[SchemaRow],
    dropped_rows: list[SchemaRow],
    parse: _Parsers,
) -> TableMetadata | None:
    """The table with an unreadable type as one of unknown values; None if more than types is unreadable."""
    guess = _Parsers(partial(_parse_or_guess, parse.columns), partial(_parse_or_guess, parse.dropped))
    try:
        return _table(name, row, column_rows, dropped_rows, guess)
    except FormatError:
        return None


def _parse_or_guess(parse: _TypeParser, keyspace: str, text: str) -> CqlType:
    try:
        return parse(keyspace, text)
    except FormatError:
        return _of_unknown_values(keyspace, text)


def _of_unknown_values(keyspace: str, text: str) -> CqlType:
    """A type with the cells that a column of this type has. Only a user type's name has no parameters, and all other
    types whose elements are cells of their own begin with their names.
    """
    match text.partition("<")[0].strip().lower():
        case "list":
            return ListType(UNREADABLE, is_multi_cell=True)
        case "set":
            return SetType(UNREADABLE, is_multi_cell=True)
        case "map":
            return MapType(UNREADABLE, UNREADABLE, is_multi_cell=True)
        case name if name == text.strip().lower() and "'" not in name:
            return UserType(keyspace, text.strip(), ("unreadable",), (UNREADABLE,), is_multi_cell=True)
        case _:
            return UNREADABLE


def _altered_with_types(table: TableMetadata, altered: Mapping[tuple[str, str], int]) -> TableMetadata:
    """ALTER TYPE leaves the rows of the tables that use the type as they are."""
    used = {(of.keyspace, of.name) for column in table.columns for of in user_types(column.type)}
    altered_at = max(table.altered_at, *(altered.get(name, 0) for name in used), 0)
    return table if altered_at == table.altered_at else replace(table, altered_at=altered_at)


def _value(row: SchemaRow, name: str) -> Any:  # noqa: ANN401  what the column's type is in Python
    value = row.get(name)
    if value is None:
        raise FormatError(f"a row of system_schema without {name}")
    return value


def _kind(text: str) -> ColumnKind:
    try:
        return ColumnKind(text.lower())
    except ValueError:
        raise FormatError(f"unknown kind of column {text!r}") from None


def _type_parser(rows: Iterable[SchemaRow]) -> _TypeParser:
    """(keyspace, text) -> type, each parsed once."""
    defined: defaultdict[str, dict[str, UserTypeDefinition]] = defaultdict(dict)
    for row in rows:
        keyspace, name = _value(row, "keyspace_name"), _value(row, "type_name")
        names, types = row.get("field_names") or (), row.get("field_types") or ()
        if len(names) == len(types):  # otherwise it is unknown to the tables that use it
            defined[keyspace][name] = UserTypeDefinition(keyspace, name, tuple(names), tuple(types))

    @cache
    def parse(keyspace: str, text: str) -> CqlType:
        return parse_type(text, keyspace, defined[keyspace])

    return parse


def _by_table(rows: Iterable[SchemaRow]) -> defaultdict[_TableName, list[SchemaRow]]:
    grouped: defaultdict[_TableName, list[SchemaRow]] = defaultdict(list)
    for row in rows:
        grouped[_value(row, "keyspace_name"), _value(row, "table_name")].append(row)
    return grouped


def _table(
    name: _TableName,
    row: SchemaRow,
    column_rows: list[SchemaRow],
    dropped_rows: list[SchemaRow],
    parse: _Parsers,
) -> TableMetadata:
    """SchemaKeyspace.fetchTable, fetchView; a view has no flags of its own."""
    columns = [_column(column_row, parse.columns) for column_row in column_rows]
    by_kind = {kind: in_order(column for column in columns if column.kind is kind) for kind in ColumnKind}
    if not by_kind[ColumnKind.PARTITION_KEY]:
        raise FormatError(f"no partition key among the columns of {'.'.join(name)}")
    dropped = {dropped.column.name: dropped for dropped in (_dropped_column(r, parse.dropped) for r in dropped_rows)}
    return TableMetadata(
        *name,
        id=_value(row, "id"),
        partition_key=by_kind[ColumnKind.PARTITION_KEY],
        clustering=by_kind[ColumnKind.CLUSTERING],
        static_columns=by_kind[ColumnKind.STATIC],
        regular_columns=by_kind[ColumnKind.REGULAR],
        dropped_columns=MappingProxyType(dropped),
        flags=frozenset(row.get("flags", ("compound",)) or ()) | _flags_of_names(column_rows),
        gc_grace_seconds=_value(row, "gc_grace_seconds"),
        cdc=bool(row.get("cdc")),
        altered_at=row.get("altered_at", 0),
    )


def _flags_of_names(column_rows: Iterable[SchemaRow]) -> frozenset[str]:
    """Updates name columns by the bytes of their names, which are not UTF-8 if Thrift's comparator is another type."""
    names = ((_value(row, "column_name"), row.get("column_name_bytes")) for row in column_rows)
    is_binary = any(raw is not None and bytes(raw) != name.encode() for name, raw in names)
    return frozenset({BINARY_NAMES}) if is_binary else frozenset()


def _column(row: SchemaRow, parse: _TypeParser) -> ColumnMetadata:
    """SchemaKeyspace.createColumnFromRow."""
    return ColumnMetadata(
        _value(row, "column_name"),
        _column_type(row, parse),
        _kind(_value(row, "kind")),
        _value(row, "position"),
        is_reversed=_value(row, "clustering_order").lower() == "desc",
    )


def _column_type(row: SchemaRow, parse: _TypeParser) -> CqlType:
    keyspace = _value(row, "keyspace_name")
    try:
        return parse(keyspace, _value(row, "type"))
    except FormatError as error:
        column = f"{_value(row, 'column_name')} of {keyspace}.{_value(row, 'table_name')}"
        raise FormatError(f"the type of the column {column} cannot be read: {error.reason}") from error


def in_order(columns: Iterable[ColumnMetadata]) -> tuple[ColumnMetadata, ...]:
    """Columns of one kind in ColumnMetadata's order, in which headers, rows and Columns have them."""
    return tuple(sorted(columns, key=_order))


def _order(column: ColumnMetadata) -> tuple[bool, int, bytes, bytes]:
    """ColumnMetadata.comparisonOrder within a kind: it compares the first six bytes of the name with the top bit of
    the first turned round, so that a name that begins outside ASCII comes before those within; then the name.
    """
    name = column.name.encode()
    prefix = name[:6].ljust(6, b"\x00")
    return column.is_complex, max(column.position, 0), bytes([prefix[0] ^ 0x80]) + prefix[1:], name


def _dropped_column(row: SchemaRow, parse: _TypeParser) -> DroppedColumn:
    """SchemaKeyspace.createDroppedColumnFromRow: user types were written out as tuples when it was dropped."""
    kind = _kind(row.get("kind") or ColumnKind.REGULAR)
    type_ = _column_type(row, parse)
    return DroppedColumn(
        ColumnMetadata(_value(row, "column_name"), type_, kind), _microseconds(_value(row, "dropped_time"))
    )


def _parse_without_user_types(keyspace: str, text: str) -> CqlType:
    return parse_type(text, keyspace, {})


def _microseconds(time: datetime | int) -> int:
    if isinstance(time, int):
        return time * 1000
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)
