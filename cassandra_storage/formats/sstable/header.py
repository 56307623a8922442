"""Resolves what an SSTable's rows are read with: its own header, and the table as far as it is known
(SerializationHeader.Component.toHeader, io.sstable.SSTableHeaderFix, tools.Util.metadataFromSSTable).

Types are those of the header: what they were when the SSTable was written. The table tells which columns were dropped,
and when, and of 3.x whether a user type is frozen: 3.0 writes all of them as if they were not.

The SSTable of a secondary index is never read as one of its base table: its rows lead from an indexed value to places
in that table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from cassandra_storage.formats.errors import FormatError, UnknownColumnError, UnsupportedError
from cassandra_storage.formats.primitives.vint import write_sized
from cassandra_storage.formats.rows.clustering_prefix import VARIABLE
from cassandra_storage.formats.rows.deletion import NO_TIMESTAMP
from cassandra_storage.formats.rows.header import ColumnLayout, Columns, SerializationHeader
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.sstable.versions import UPGRADE
from cassandra_storage.formats.types.compatible_types import reads
from cassandra_storage.formats.types.cql_types import type_text
from cassandra_storage.formats.types.marshal import (
    CqlType,
    CustomType,
    ListType,
    MapType,
    NativeType,
    SetType,
    UserType,
    fixed_length,
)
from cassandra_storage.formats.types.type_names import NamedType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_storage.formats.sstable.metadata import HeaderColumn, HeaderComponent
    from cassandra_storage.formats.sstable.versions import SSTableFormat

_COUNTER = NativeType("counter")
_NEVER = NO_TIMESTAMP - 1  # before every timestamp
_UNKNOWN_ID = UUID(int=0)
_INDEX_ORDER = "org.apache.cassandra.db.marshal.PartitionerDefinedOrder"  # CassandraIndex.indexCfsMetadata


class SSTableSchema(NamedTuple):
    """The facts that reading the rows of an SSTable needs."""

    # The table, with each column of the header, alive or dropped.
    table: TableMetadata
    # The header of the rows.
    header: SerializationHeader


def resolve(
    header: HeaderComponent, form: SSTableFormat, table: TableMetadata | None, name: tuple[str, str, UUID | None]
) -> SSTableSchema:
    """Return how to read the rows. `table`: None if only the header is known; then the columns of the key get names of
    our own, and the table is of that keyspace, name and id.

    UnknownColumnError if the table does not have a column and never dropped it; UnsupportedError if a column of 3.x may
    be a frozen user type or not; FormatError if the header is that of an index or of another table.
    """
    if table is not None:
        _check_key(header, table)
    regular = _columns(header.regular_columns, ColumnKind.REGULAR, form, table)
    static = _columns(header.static_columns, ColumnKind.STATIC, form, table)
    clustering = [frozen(clustering_type.type) for clustering_type in header.clustering_types]
    known = _table(header, static, regular, name) if table is None else table
    lengths = tuple(_length(value_type) for value_type in clustering)
    static_columns, regular_columns = (
        Columns(tuple(_layout(listed, known) for listed in columns)) for columns in (static, regular)
    )
    return SSTableSchema(known, SerializationHeader(lengths, static_columns, regular_columns, header.stats, form.rows))


def is_index(header: HeaderComponent) -> bool:
    """Return whether the SSTable is that of a secondary index: its first clustering is the key of the base table, in
    the order of the partitioner.
    """
    first = header.clustering_types[0].type if header.clustering_types else None
    return isinstance(first, CustomType) and first.class_name.startswith(_INDEX_ORDER)


def _check_key(header: HeaderComponent, table: TableMetadata) -> None:
    """FormatError if the key of the table is not that of the header."""
    if is_index(header):
        raise FormatError(f"the rows are those of a secondary index, not of {table.qualified_name}")
    key = tuple(NamedType(key_type) for key_type in header.key_type.key_types)
    if not any(isinstance(column.type, CustomType) for column in table.partition_key):
        _check_columns("partition key", key, table.partition_key, table)
    _check_columns("clustering", header.clustering_types, table.clustering, table)


def _check_columns(
    what: str, written: Sequence[NamedType], columns: Sequence[ColumnMetadata], table: TableMetadata
) -> None:
    if len(written) != len(columns):
        found = f"{len(written)} {what} columns, the table {len(columns)}"
        raise FormatError(f"the header has {found}: {table.qualified_name} is another table")
    for found_type, column in zip(written, columns, strict=True):
        if not reads(column.type, found_type.type):
            raise _another(table, column, found_type.type)
        if column.kind is ColumnKind.CLUSTERING and column.is_reversed != found_type.is_reversed:
            order = "descending" if found_type.is_reversed else "ascending"
            reason = f"the header has {order} values of {column.name!r}: {table.qualified_name} is another table"
            raise FormatError(reason)


def _another(table: TableMetadata, column: ColumnMetadata, written: CqlType) -> FormatError:
    types = f"{column.name!r} is {type_text(column.type)} in the table and {type_text(written)} in the header"
    return FormatError(f"{types}: {table.qualified_name} is another table")


def frozen(type_: CqlType) -> CqlType:
    """AbstractType.freeze."""
    if isinstance(type_, ListType | SetType | MapType | UserType):
        return replace(type_, is_multi_cell=False)
    return type_


def _columns(
    columns: Sequence[HeaderColumn], kind: ColumnKind, form: SSTableFormat, table: TableMetadata | None
) -> list[ColumnMetadata]:
    """The columns as the header has them: with its types, in its order."""
    found = [ColumnMetadata(_name(column.name), column.type.type, kind) for column in columns]
    if table is not None:
        for column in found:
            _check_column(table, column)
    if form.frozen_is_written:
        return found
    return [_with_freezing(found, index, table) for index in range(len(found))]


def _name(name: bytes) -> str:
    return name.decode(errors="backslashreplace")


def _check_column(table: TableMetadata, written: ColumnMetadata) -> None:
    """UnknownColumnError if the table never had such a column, FormatError if it had only others of that name."""
    alive = _in_table(table, written)
    if alive is None:
        raise UnknownColumnError(f"unknown column {written.name!r} of {table.qualified_name}")
    dropped = table.dropped_columns.get(written.name)
    may_be = (alive.type,) if dropped is None else (alive.type, dropped.column.type)
    if not any(reads(type_, written.type) for type_ in may_be):
        raise _another(table, alive, written.type)


def _in_table(table: TableMetadata, column: ColumnMetadata) -> ColumnMetadata | None:
    """The table's column of that name and kind, otherwise the dropped one."""
    columns = table.static_columns if column.kind is ColumnKind.STATIC else table.regular_columns
    for listed in columns:
        if listed.name == column.name:
            return listed
    dropped = table.dropped_columns.get(column.name)
    return None if dropped is None else dropped.column


def _with_freezing(columns: list[ColumnMetadata], index: int, table: TableMetadata | None) -> ColumnMetadata:
    """SSTableHeaderFix.fixType: the column with its user type frozen, if it is."""
    column = columns[index]
    if not isinstance(column.type, UserType) or not column.is_complex:
        return column
    known = None if table is None else _in_table(table, column)
    if known is not None and isinstance(known.type, UserType):
        return column if known.is_complex else replace(column, type=frozen(column.type))
    # Columns whose elements are cells come last.
    if any(not later.is_complex for later in columns[index + 1 :]):
        return replace(column, type=frozen(column.type))
    if any(earlier.is_complex and not isinstance(earlier.type, UserType) for earlier in columns[:index]):
        return column
    raise UnsupportedError(
        f"column {column.name!r} was written by 3.x and may be a frozen user type or not; name the schema of the table"
        f" that has the column, or {UPGRADE}"
    )


def _layout(column: ColumnMetadata, table: TableMetadata) -> ColumnLayout:
    dropped = table.dropped_columns.get(column.name)
    return ColumnLayout(
        column.name,
        column.is_complex,
        _length(column.type),
        _NEVER if dropped is None else dropped.dropped_time,
        write_sized(column.name.encode()),
        column.type == _COUNTER,
    )


def _length(type_: CqlType) -> int:
    length = fixed_length(type_)
    return VARIABLE if length is None else length


def _table(
    header: HeaderComponent,
    static: list[ColumnMetadata],
    regular: list[ColumnMetadata],
    name: tuple[str, str, UUID | None],
) -> TableMetadata:
    """The table as far as a header tells: `key0`, … and `clustering0`, … for the columns whose names it lacks; of an
    index `indexed_value`, `partition_key` (of the base table, in bytes) and then `clustering0`, ….
    """
    keyspace, table_name, table_id = name
    key_names, clustering_names = _key_names(header)
    partition_key = tuple(
        ColumnMetadata(key_name, frozen(type_), ColumnKind.PARTITION_KEY, index)
        for index, (key_name, type_) in enumerate(zip(key_names, header.key_type.key_types, strict=True))
    )
    clustering = tuple(
        ColumnMetadata(column_name, frozen(of_key.type), ColumnKind.CLUSTERING, index, of_key.is_reversed)
        for index, (column_name, of_key) in enumerate(zip(clustering_names, header.clustering_types, strict=True))
    )
    is_counter = any(column.type == _COUNTER for column in (*static, *regular))
    flags = frozenset({"compound", "counter"} if is_counter else {"compound"})
    columns = tuple(static), tuple(regular)
    return TableMetadata(
        keyspace, table_name, table_id or _UNKNOWN_ID, partition_key, clustering, *columns, flags=flags
    )


def _key_names(header: HeaderComponent) -> tuple[list[str], list[str]]:
    keys = [f"key{index}" for index in range(len(header.key_type.key_types))]
    clusterings = [f"clustering{index}" for index in range(len(header.clustering_types))]
    if not is_index(header):
        return keys, clusterings
    return ["indexed_value"] if len(keys) == 1 else keys, ["partition_key", *clusterings[:-1]]
