"""Which tables with `cdc = true` are not published, and why. Pure: no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.byte_comparable import path_encoder, value_encoder
from cassandra_storage.cql_types import type_text
from cassandra_storage.errors import FormatError
from cassandra_storage.schema import BINARY_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable

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
        if not _is_ordered(value_encoder, column.type):
            return _without_order("clustering column", column)
    for column in table.static_columns + table.regular_columns:
        if column.is_complex and not _is_ordered(path_encoder, column.type):
            return _without_order("column", column)
    return ""


def _is_ordered(encoder: Callable[[CqlType], object], column_type: CqlType) -> bool:
    """The materializer stores rows and elements in the order of Cassandra's comparator."""
    try:
        encoder(column_type)
    except FormatError:
        return False
    return True


def _without_order(kind: str, column: ColumnMetadata) -> str:
    return f"The order of the {kind} {column.name} is not known: its type is {type_text(column.type)}."
