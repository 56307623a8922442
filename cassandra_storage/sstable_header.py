"""What the rows of an SSTable are read with: its own header, and the table as far as it is known
(SerializationHeader.Component.toHeader, io.sstable.SSTableHeaderFix, tools.Util.metadataFromSSTable).

Types are those of the header: what they were when the SSTable was written. The table tells which columns were dropped,
and when, and of 3.x whether a user type is frozen: 3.0 writes all of them as if they were not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from cassandra_storage.clustering_prefix import VARIABLE
from cassandra_storage.deletion import NO_TIMESTAMP
from cassandra_storage.errors import FormatError, UnknownColumnError, UnsupportedError
from cassandra_storage.header import ColumnLayout, Columns, SerializationHeader
from cassandra_storage.marshal import CqlType, ListType, MapType, NativeType, SetType, UserType, fixed_length
from cassandra_storage.schema import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.sstable_versions import UPGRADE
from cassandra_storage.vint import write_sized

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_storage.sstable_metadata import HeaderColumn, HeaderComponent
    from cassandra_storage.sstable_versions import SSTableFormat

_COUNTER = NativeType("counter")
_NEVER = NO_TIMESTAMP - 1  # before every timestamp
_UNKNOWN_ID = UUID(int=0)


class SSTableSchema(NamedTuple):
    """`table` has each column of the header, alive or dropped."""

    table: TableMetadata
    header: SerializationHeader


def resolve(
    header: HeaderComponent, form: SSTableFormat, table: TableMetadata | None, name: tuple[str, str, UUID | None]
) -> SSTableSchema:
    """How to read the rows. `table`: None if only the header is known; then the columns of the key get names of our
    own, and the table is of that keyspace, name and id.

    UnknownColumnError if the table does not have a column and never dropped it; UnsupportedError if a column of 3.x may
    be a frozen user type or not; FormatError if the table's clustering is another.
    """
    regular = _columns(header.regular_columns, ColumnKind.REGULAR, form, table)
    static = _columns(header.static_columns, ColumnKind.STATIC, form, table)
    clustering = [frozen(each.type) for each in header.clustering_types]
    if table is None:
        known = _table(header, static, regular, name)
    else:
        known = table
        if len(table.clustering) != len(clustering):
            found = f"{len(clustering)} clustering columns, the table {len(table.clustering)}"
            raise FormatError(f"the header has {found}: {table.qualified_name} is another table")
    lengths = tuple(_length(each) for each in clustering)
    static_columns, regular_columns = (
        Columns(tuple(_layout(each, known) for each in columns)) for columns in (static, regular)
    )
    return SSTableSchema(known, SerializationHeader(lengths, static_columns, regular_columns, header.stats, form.rows))


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
            if _in_table(table, column) is None:
                raise UnknownColumnError(f"unknown column {column.name!r} of {table.qualified_name}")
    if form.frozen_is_written:
        return found
    return [_with_freezing(found, index, table) for index in range(len(found))]


def _name(name: bytes) -> str:
    return name.decode(errors="backslashreplace")


def _in_table(table: TableMetadata, column: ColumnMetadata) -> ColumnMetadata | None:
    """The table's column of that name and kind, otherwise the dropped one."""
    columns = table.static_columns if column.kind is ColumnKind.STATIC else table.regular_columns
    for each in columns:
        if each.name == column.name:
            return each
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
    if any(not each.is_complex for each in columns[index + 1 :]):
        return replace(column, type=frozen(column.type))
    if any(each.is_complex and not isinstance(each.type, UserType) for each in columns[:index]):
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
    """The table as far as a header tells: `key0`, … and `clustering0`, … for the columns whose names it lacks."""
    keyspace, table_name, table_id = name
    partition_key = tuple(
        ColumnMetadata(f"key{index}", frozen(type_), ColumnKind.PARTITION_KEY, index)
        for index, type_ in enumerate(header.key_type.key_types)
    )
    clustering = tuple(
        ColumnMetadata(f"clustering{index}", frozen(each.type), ColumnKind.CLUSTERING, index, each.is_reversed)
        for index, each in enumerate(header.clustering_types)
    )
    is_counter = any(column.type == _COUNTER for column in (*static, *regular))
    flags = frozenset({"compound", "counter"} if is_counter else {"compound"})
    columns = tuple(static), tuple(regular)
    return TableMetadata(
        keyspace, table_name, table_id or _UNKNOWN_ID, partition_key, clustering, *columns, flags=flags
    )
