"""Dropped columns: the cells that a drop removes, and columns whose type is not in system_schema.

A user type may be dropped after its columns, so that Cassandra writes it out as a tuple, which is always frozen
(SchemaKeyspace.expandUserTypes). 3.11 also drops columns of a non-frozen user type, whose cells were written one by
one; 4.0 and later refuse to (AlterTableStatement.DropColumns). Such a column can be added again only frozen
(AbstractType.isSerializationCompatibleWith compares with the frozen tuple).
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from cassandra_storage.formats.rows.deletion import LIVE
from cassandra_storage.formats.rows.row import Cell, ComplexColumnData
from cassandra_storage.formats.schema.schema_rows import in_order
from cassandra_storage.formats.schema.tables import ColumnKind, DroppedColumn
from cassandra_storage.formats.types.marshal import TupleType, UserType

if TYPE_CHECKING:
    from collections.abc import Collection

    from cassandra_storage.formats.rows.row import ColumnData, Row
    from cassandra_storage.formats.schema.tables import ColumnMetadata, TableMetadata
    from cassandra_storage.formats.types.marshal import CqlType

_ALL_DROPPED = 2**63 - 1  # µs: all cells of the column are dropped


def without_dropped(row: Row, table: TableMetadata) -> Row:
    """The row as the table can hold it: without the cells that the table's drops have ended
    (SerializationHelper.isDropped), and without the cells of a non-frozen user type that the table has as a tuple.
    """
    dropped = {name: table.dropped_columns[name] for name in row.columns if name in table.dropped_columns}
    if not dropped:
        return row
    columns = {name: dropped_column.column for name, dropped_column in dropped.items()}
    columns |= {
        static_column.name: static_column
        for static_column in table.static_columns + table.regular_columns
        if static_column.name in dropped
    }
    left = dict(row.columns)
    for name, column in columns.items():
        data = row.columns[name]
        kept = _since(data, dropped[name].dropped_time) if _fits(data, column) else None
        if kept is None:
            del left[name]
        else:
            left[name] = kept
    return row._replace(columns=left)


def _fits(data: ColumnData, column: ColumnMetadata) -> bool:
    return isinstance(data, ComplexColumnData) is column.is_complex


def _since(data: ColumnData, dropped_time: int) -> ColumnData | None:
    if isinstance(data, Cell):
        return data if data.timestamp > dropped_time else None
    cells = tuple(cell for cell in data.cells if cell.timestamp > dropped_time)
    deletion = LIVE if data.deletion.marked_for_delete_at <= dropped_time else data.deletion
    return ComplexColumnData(deletion, cells) if cells or not deletion.is_live else None


def columns_of_rows(table: TableMetadata) -> tuple[ColumnMetadata, ...]:
    """All that a row may hold: static columns, regular ones, and dropped ones. A node that has not heard of a drop may
    have written a column after it.
    """
    named = table.static_columns + table.regular_columns
    names = {column.name for column in named}
    return named + tuple(
        dropped_column.column for name, dropped_column in table.dropped_columns.items() if name not in names
    )


def may_have_been_user_type(column_type: CqlType) -> bool:
    """Return True for the type of a dropped column that system_schema shows for a non-frozen user type, too."""
    return isinstance(column_type, TupleType)


def cell_by_cell(table: TableMetadata, names: Collection[str]) -> TableMetadata:
    """The table that reads updates in which these dropped columns are non-frozen user types. Their cells are left out:
    no later column can show them, as such a column cannot be added again. `altered_at` is 0: it is never the newest.
    """
    dropped = {name: DroppedColumn(_as_user_type(table.dropped_columns[name].column), _ALL_DROPPED) for name in names}
    return replace(
        table,
        static_columns=tuple(
            static_column for static_column in table.static_columns if static_column.name not in dropped
        ),
        regular_columns=tuple(
            regular_column for regular_column in table.regular_columns if regular_column.name not in dropped
        ),
        dropped_columns=MappingProxyType({**table.dropped_columns, **dropped}),
        altered_at=0,
    )


def as_if_not_dropped(table: TableMetadata) -> TableMetadata:
    """The table that reads all cells, those of dropped columns too: these are columns like any other."""
    alive = {column.name for column in table.columns}
    gone = [dropped_column.column for name, dropped_column in table.dropped_columns.items() if name not in alive]
    return replace(
        table,
        static_columns=in_order(
            (*table.static_columns, *(column for column in gone if column.kind is ColumnKind.STATIC))
        ),
        regular_columns=in_order(
            (*table.regular_columns, *(column for column in gone if column.kind is not ColumnKind.STATIC))
        ),
        dropped_columns=MappingProxyType({}),
    )


def _as_user_type(column: ColumnMetadata) -> ColumnMetadata:
    """Return the column as a user type with the tuple's fields. None are known if a later column of that name had
    another type.
    """
    types = column.type.types if isinstance(column.type, TupleType) else ()
    names = tuple(f"f{index}" for index in range(len(types)))
    return replace(column, type=UserType("", column.name, names, types, is_multi_cell=True))
