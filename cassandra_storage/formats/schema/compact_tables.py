"""Compact tables as CQL shows them (org.apache.cassandra.schema.TableMetadata.CompactTableMetadata; 3.11: CFMetaData).

What is stored differs from what `SELECT` shows:
- static compact (`PRIMARY KEY (k)`): the columns are static ones; a clustering `column1` and a regular `value`, meant
  for Thrift's dynamic columns, are hidden, and with them the rows that have them;
- dense without a value (`PRIMARY KEY (k, c)` and no other column): a regular `value` of the type `empty` is hidden,
  whose cell alone says that the row is there.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from cassandra_storage.formats.schema.tables import ColumnKind, DroppedColumn
from cassandra_storage.formats.types.marshal import NativeType

if TYPE_CHECKING:
    from cassandra_storage.formats.schema.tables import ColumnMetadata, TableMetadata

_EMPTY = NativeType("empty")


def as_selected(table: TableMetadata) -> TableMetadata:
    """The table with the columns that `SELECT *` shows, as what it shows them; a table that is not compact as it is."""
    if table.is_static_compact:
        shown = tuple(replace(column, kind=ColumnKind.REGULAR) for column in table.static_columns)
        return replace(
            table, clustering=(), static_columns=(), regular_columns=shown, dropped_columns=_shown_drops(table)
        )
    hidden = hidden_columns(table)
    if hidden:
        return replace(
            table,
            regular_columns=tuple(
                regular_column for regular_column in table.regular_columns if regular_column not in hidden
            ),
        )
    return table


def hidden_columns(table: TableMetadata) -> frozenset[ColumnMetadata]:
    """The columns of compact tables that CQL hides."""
    if table.is_static_compact:
        return frozenset(table.clustering + table.regular_columns)
    if table.is_compact:
        return frozenset(regular_column for regular_column in table.regular_columns if regular_column.type == _EMPTY)
    return frozenset()


def _shown_drops(table: TableMetadata) -> MappingProxyType[str, DroppedColumn]:
    drops = {
        name: DroppedColumn(replace(dropped_column.column, kind=ColumnKind.REGULAR), dropped_column.dropped_time)
        for name, dropped_column in table.dropped_columns.items()
    }
    return MappingProxyType(drops)
