"""Find which tables with `cdc = true` are not published, and why. Pure: no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.byte_comparable import has_order
from cassandra_storage.cql_types import type_text
from cassandra_storage.marshal import MapType, SetType
from cassandra_storage.schema import BINARY_NAMES

if TYPE_CHECKING:
    from cassandra_storage.marshal import CqlType
    from cassandra_storage.schema import ColumnMetadata, TableMetadata


def refusal(table: TableMetadata) -> str:
    """Why the table cannot be published, as a sentence; empty if it can."""
    if table.is_view:
        return "It is a materialized view: its rows follow from its table."
    if "super" in table.flags:
        return "It is a super column family, which Thrift made."
    if BINARY_NAMES in table.flags:
        return "It is a table that Thrift made, and the names of its columns are not text."
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
