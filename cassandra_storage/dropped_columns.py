"""Dropped columns: the cells that a drop removes, and columns whose type is not in system_schema.

A user type may be dropped after its columns, so that TableMetadata.Builder.recordColumnDrop writes it out as a tuple
(AbstractType.expandUserTypes; see SchemaKeyspace and DroppedColumn), which is always frozen. A non-frozen user type was
written cell by cell, and such a column can never be added again, because only another multi-cell type would do
(AbstractType.isSerializationCompatibleWith).
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from cassandra_storage.deletion import LIVE
from cassandra_storage.marshal import TupleType, UserType
from cassandra_storage.rows import Cell, ComplexColumnData
from cassandra_storage.schema import DroppedColumn

if TYPE_CHECKING:
    from cassandra_storage.rows import ColumnData, Row
    from cassandra_storage.schema import ColumnMetadata, TableMetadata

_ALL_DROPPED = 2**63 - 1  # µs: none of the cells is there any more: such a column cannot be added again


def without_dropped(row: Row, table: TableMetadata) -> Row:
    """The row as the table can hold it: without the cells that the table's drops have ended
    (SerializationHelper.isDropped), and without the cells of a non-frozen user type that the table has as a tuple.
    """
    dropped = {name: table.dropped_columns[name] for name in row.columns if name in table.dropped_columns}
    if not dropped:
        return row
    columns = {name: each.column for name, each in dropped.items()}
    columns |= {each.name: each for each in table.static_columns + table.regular_columns if each.name in dropped}
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


def with_user_types(table: TableMetadata) -> TableMetadata | None:
    """The table by which updates are read that were written while its dropped tuples were non-frozen user types.

    None if it has none. Where the table itself does not fit an update, this one may.
    """
    doubtful = {name: each for name, each in table.dropped_columns.items() if isinstance(each.column.type, TupleType)}
    if not doubtful:
        return None
    dropped = {name: _as_user_type(each) for name, each in doubtful.items()}
    return replace(
        table,
        static_columns=tuple(each for each in table.static_columns if each.name not in dropped),
        regular_columns=tuple(each for each in table.regular_columns if each.name not in dropped),
        dropped_columns=MappingProxyType({**table.dropped_columns, **dropped}),
        altered_at=0,
    )


def _as_user_type(dropped: DroppedColumn) -> DroppedColumn:
    column: ColumnMetadata = dropped.column
    assert isinstance(column.type, TupleType)
    names = tuple(f"f{index}" for index in range(len(column.type.types)))
    user_type = UserType("", column.name, names, column.type.types, is_multi_cell=True)
    return DroppedColumn(replace(column, type=user_type), _ALL_DROPPED)
