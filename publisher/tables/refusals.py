"""Find which tables with `cdc = true` are not published, and why. Pure: no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.rows.byte_comparable import has_order
from cassandra_storage.formats.schema.schema_rows import UNREADABLE
from cassandra_storage.formats.schema.tables import BINARY_NAMES
from cassandra_storage.formats.types.cql_types import type_text
from cassandra_storage.formats.types.marshal import MapType, SetType, all_types

if TYPE_CHECKING:
    from cassandra_storage.formats.schema.tables import ColumnMetadata, TableMetadata
    from cassandra_storage.formats.types.marshal import CqlType


def is_unreadable(table: TableMetadata) -> bool:
    """Return whether a type of the table could not be read: see cassandra_storage.formats.schema.schema_rows."""
    return _unreadable_column(table) is not None


def _unreadable_column(table: TableMetadata) -> ColumnMetadata | None:
    return next((column for column in table.columns if UNREADABLE in all_types(column.type)), None)


def refusal(table: TableMetadata) -> str:
    """Return why the table cannot be published, as a sentence; empty if it can."""
    return _kind_refusal(table) or _order_refusal(table)


def _kind_refusal(table: TableMetadata) -> str:
    if table.is_view:
        return "It is a materialized view: its rows follow from its table."
    if "super" in table.flags:
        return "It is a super column family, which Thrift made."
    if BINARY_NAMES in table.flags:
        return "It is a table that Thrift made, and the names of its columns are not text."
    return ""


def _order_refusal(table: TableMetadata) -> str:
    unreadable = _unreadable_column(table)
    if unreadable is not None:
        return f"The type of the column {unreadable.name} cannot be read."
    for column in table.clustering:
        if not has_order(column.type):
            return _without_order("clustering column", column)
    for column in table.static_columns + table.regular_columns:
        if not all(has_order(paths) for paths in _path_types(column.type)):
            return _without_order("column", column)
    return ""


def _path_types(column_type: CqlType) -> tuple[CqlType, ...]:
    """The types of the cell paths: the materializer stores rows and elements in the order of Cassandra's comparator."""
    match column_type:
        case MapType(of, _, is_multi_cell) | SetType(of, is_multi_cell) if is_multi_cell:
            return (of,)
    return ()


def _without_order(kind: str, column: ColumnMetadata) -> str:
    return f"The order of the {kind} {column.name} is not known: its type is {type_text(column.type)}."
