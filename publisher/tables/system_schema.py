"""The node's tables as system_schema describes them now, and which version of them the node has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from cassandra_storage.formats.schema.schema_rows import UnreadableTable, read_each_table
from cassandra_storage.formats.schema.tables import TableMetadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID


# Runs a CQL query on the node and returns the rows; CdcError if the node does not answer.
RunQuery: TypeAlias = Callable[[str], list[dict[str, Any]]]

_TABLES = ("tables", "columns", "types", "views")
# The key of each of these tables, and the column that every ALTER writes.
_ALTERED = {"tables": ("table_name", "id"), "views": ("view_name", "id"), "types": ("type_name", "field_types")}
VERSION_QUERY = "SELECT schema_version, truncated_at FROM system.local WHERE key = 'local'"


class NodeTables(NamedTuple):
    """The node's tables by the bytes of their ids: those that this build can read, and the others."""

    tables: dict[bytes, TableMetadata]
    unreadable: dict[bytes, UnreadableTable]


def read_local(run_query: RunQuery) -> tuple[UUID, Mapping[UUID, bytes]]:
    """The version of the schema, and the node's truncation records by table id."""
    row = run_query(VERSION_QUERY)[0]
    return row["schema_version"], row.get("truncated_at") or {}


def read_tables(run_query: RunQuery) -> NodeTables:
    """The node's tables as they are now. FormatError if rows lack their own key."""
    rows = {name: run_query(f"SELECT * FROM system_schema.{name}") for name in _TABLES}  # noqa: S608 - constants
    rows["dropped_columns"] = run_query(_dropped_columns_query(rows["columns"]))
    for name, (key, written) in _ALTERED.items():
        altered = run_query(
            f"SELECT keyspace_name, {key}, writetime({written}) AS altered_at FROM system_schema.{name}"  # noqa: S608
        )
        times = {(row["keyspace_name"], row[key]): row["altered_at"] for row in altered}
        rows[name] = [{**row, "altered_at": times.get((row["keyspace_name"], row[key]), 0)} for row in rows[name]]
    read = read_each_table(**rows)
    return NodeTables(
        {table_id.bytes: table for table_id, table in read.tables.items()},
        {table_id.bytes: table for table_id, table in read.unreadable.items()},
    )


def _dropped_columns_query(columns: Iterable[Mapping[str, Any]]) -> str:
    """The driver cannot convert the drop times of Cassandra's own tables to datetime; 3.11 has fewer columns."""
    table = ("system_schema", "dropped_columns")
    names = [row["column_name"] for row in columns if (row["keyspace_name"], row["table_name"]) == table]
    chosen = ["toUnixTimestamp(dropped_time) AS dropped_time" if name == "dropped_time" else name for name in names]
    return f"SELECT {', '.join(chosen)} FROM system_schema.dropped_columns"  # noqa: S608 - names from the schema
