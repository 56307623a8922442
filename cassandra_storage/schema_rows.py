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
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from cassandra_storage.cql_types import UserTypeDefinition, parse_type
from cassandra_storage.errors import FormatError
from cassandra_storage.marshal import CqlType, user_types
from cassandra_storage.schema import BINARY_NAMES, VIEW, ColumnKind, ColumnMetadata, DroppedColumn, TableMetadata

if TYPE_CHECKING:
    from uuid import UUID

SchemaRow: TypeAlias = Mapping[str, Any]
_TableName: TypeAlias = tuple[str, str]
_TypeParser: TypeAlias = Callable[[str, str], CqlType]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def tables_from_rows(
    tables: Iterable[SchemaRow],
    columns: Iterable[SchemaRow],
    types: Collection[SchemaRow],
    dropped_columns: Iterable[SchemaRow],
    views: Iterable[SchemaRow] = (),
) -> dict[UUID, TableMetadata]:
    """The tables (and views) that rows of system_schema's tables of these names, of 3.11 to 5.0, describe.

    FormatError names a table without a partition key (its rows were read while it was made or dropped), a column that
    a row lacks, a kind or type that cannot be parsed, or a user type that is not there.
    """
    parse = _type_parser(types)
    columns_of = _by_table(columns)
    dropped_of = _by_table(dropped_columns)
    found = {}
    for row in tables:
        name = (_value(row, "keyspace_name"), _value(row, "table_name"))
        found[_value(row, "id")] = _table(name, row, columns_of[name], dropped_of[name], parse)
    for row in views:
        name = (_value(row, "keyspace_name"), _value(row, "view_name"))
        described = {**row, "flags": ("compound", VIEW)}
        found[_value(row, "id")] = _table(name, described, columns_of[name], dropped_of[name], parse)
    altered = {(_value(row, "keyspace_name"), _value(row, "type_name")): row.get("altered_at", 0) for row in types}
    return {table_id: _altered_with_types(table, altered) for table_id, table in found.items()}


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
        if len(names) != len(types):
            raise FormatError(f"user type {keyspace}.{name} of {len(names)} names and {len(types)} types")
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
    parse: _TypeParser,
) -> TableMetadata:
    """SchemaKeyspace.fetchTable, fetchView; a view has no flags of its own."""
    columns = [_column(column_row, parse) for column_row in column_rows]
    by_kind = {kind: in_order(column for column in columns if column.kind is kind) for kind in ColumnKind}
    if not by_kind[ColumnKind.PARTITION_KEY]:
        raise FormatError(f"no partition key among the columns of {'.'.join(name)}")
    dropped = {dropped.column.name: dropped for dropped in (_dropped_column(r) for r in dropped_rows)}
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
        parse(_value(row, "keyspace_name"), _value(row, "type")),
        _kind(_value(row, "kind")),
        _value(row, "position"),
        is_reversed=_value(row, "clustering_order").lower() == "desc",
    )


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


def _dropped_column(row: SchemaRow) -> DroppedColumn:
    """SchemaKeyspace.createDroppedColumnFromRow: user types were written out as tuples when it was dropped."""
    kind = _kind(row.get("kind") or ColumnKind.REGULAR)
    type_ = parse_type(_value(row, "type"), _value(row, "keyspace_name"), {})
    return DroppedColumn(
        ColumnMetadata(_value(row, "column_name"), type_, kind), _microseconds(_value(row, "dropped_time"))
    )


def _microseconds(time: datetime | int) -> int:
    if isinstance(time, int):
        return time * 1000
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)
