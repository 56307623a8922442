"""The columns that the rows of a table may hold, with the dropped ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cassandra_storage.formats.schema.schema_rows import in_order
from cassandra_storage.formats.schema.tables import ColumnKind

if TYPE_CHECKING:
    from cassandra_storage.formats.schema.tables import ColumnMetadata, TableMetadata


def row_columns(table: TableMetadata) -> dict[str, ColumnMetadata]:
    """All columns that a row or static row may hold, by name, including dropped ones."""
    columns = {name: dropped.column for name, dropped in table.dropped_columns.items()}
    return columns | {column.name: column for column in table.static_columns + table.regular_columns}


def with_dropped_columns(table: TableMetadata) -> TableMetadata:
    """The table as it is stored: cells of a dropped column that are newer than its drop stay, as in Cassandra, and
    are shown again if the column is added again.
    """
    present = {column.name for column in table.static_columns + table.regular_columns}
    dropped = [former.column for name, former in table.dropped_columns.items() if name not in present]
    if not dropped:
        return table
    statics = [column for column in dropped if column.kind is ColumnKind.STATIC]
    regulars = [column for column in dropped if column.kind is ColumnKind.REGULAR]
    return replace(
        table,
        static_columns=in_order([*table.static_columns, *statics]),
        regular_columns=in_order([*table.regular_columns, *regulars]),
    )
