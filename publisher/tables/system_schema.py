"""The node's tables as system_schema describes them now, and which version of them the node has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.schema.schema_rows import UnreadableTable, read_each_table
from cassandra_storage.formats.schema.tables import TableMetadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID


# Runs a CQL query on the node and returns the rows; CdcError if the node does not answer.
RunQuery: TypeAlias = Callable[[str], list[dict[str, Any]]]

_Name: TypeAlias = tuple[str, str]

_TABLES = ("tables", "columns", "types", "views")
# The key of each of these tables, and the column that every ALTER writes.
_ALTERED = {"tables": ("table_name", "id"), "views": ("view_name", "id"), "types": ("type_name", "field_types")}
# The column with the name of the table or view, in each table with rows about one.
_NAMES = {"tables": "table_name", "columns": "table_name", "dropped_columns": "table_name", "views": "view_name"}
VERSION_QUERY = "SELECT schema_version, truncated_at FROM system.local WHERE key = 'local'"


class NodeTables(NamedTuple):
    """The node's tables by the bytes of their ids."""

    # Those that this build can read.
    tables: dict[bytes, TableMetadata]
    # The others.
    unreadable: dict[bytes, UnreadableTable]


def read_local(run_query: RunQuery) -> tuple[UUID, Mapping[UUID, bytes]]:
    """The version of the schema, and the node's truncation records by table id."""
    row = run_query(VERSION_QUERY)[0]
    return row["schema_version"], row.get("truncated_at") or {}


class SystemSchema:
    """Reads the node's tables again and again. Only tables whose rows have changed are parsed: with a thousand tables,
    one of them changes at a time.
    """

    def __init__(self, run_query: RunQuery) -> None:
        self._run_query = run_query
        self._digests: dict[_Name, bytes] = {}
        self._tables: dict[_Name, TableMetadata] = {}

    def read(self) -> NodeTables:
        """The node's tables as they are now. FormatError if rows lack their own key."""
        rows = _read_rows(self._run_query)
        digests = _digests(rows)
        same = {name: table for name, table in self._tables.items() if digests.get(name) == self._digests[name]}
        read = read_each_table(
            **{
                of: [row for row in found if of == "types" or _name(row, _NAMES[of]) not in same]
                for of, found in rows.items()
            }
        )
        parsed = {(table.keyspace, table.name): table for table in read.tables.values()}
        self._digests, self._tables = digests, same | parsed
        return NodeTables(
            {table.id.bytes: table for table in self._tables.values()},
            {table_id.bytes: table for table_id, table in read.unreadable.items()},
        )


def read_tables(run_query: RunQuery) -> NodeTables:
    """Read the node's tables once, as SystemSchema.read does."""
    return SystemSchema(run_query).read()


def _digests(rows: Mapping[str, list[dict[str, Any]]]) -> dict[_Name, bytes]:
    """A digest of all that system_schema says of each table and view, all types included: any table may use them."""
    types = repr(rows["types"]).encode()
    hashes: defaultdict[_Name, blake2b] = defaultdict(partial(blake2b, types, digest_size=16))
    for of, key in _NAMES.items():
        for row in rows[of]:
            hashes[_name(row, key)].update(repr(row).encode())
    return {name: table_hash.digest() for name, table_hash in hashes.items()}


def _name(row: Mapping[str, Any], key: str) -> _Name:
    """The keyspace and name of the table or view that a row is about."""
    keyspace, name = row.get("keyspace_name"), row.get(key)
    if keyspace is None or name is None:
        raise FormatError(f"a row of system_schema without {key}")
    return keyspace, name


def _read_rows(run_query: RunQuery) -> dict[str, list[dict[str, Any]]]:
    rows = {name: run_query(f"SELECT * FROM system_schema.{name}") for name in _TABLES}  # noqa: S608 - constants
    rows["dropped_columns"] = run_query(_dropped_columns_query(rows["columns"]))
    for name, (key, written) in _ALTERED.items():
        altered = run_query(
            f"SELECT keyspace_name, {key}, writetime({written}) AS altered_at FROM system_schema.{name}"  # noqa: S608
        )
        times = {(row["keyspace_name"], row[key]): row["altered_at"] for row in altered}
        rows[name] = [{**row, "altered_at": times.get((row["keyspace_name"], row[key]), 0)} for row in rows[name]]
    return rows


def _dropped_columns_query(columns: Iterable[Mapping[str, Any]]) -> str:
    """The driver cannot convert the drop times of Cassandra's own tables to datetime; 3.11 has fewer columns."""
    table = ("system_schema", "dropped_columns")
    names = [row["column_name"] for row in columns if (row["keyspace_name"], row["table_name"]) == table]
    chosen = ["toUnixTimestamp(dropped_time) AS dropped_time" if name == "dropped_time" else name for name in names]
    return f"SELECT {', '.join(chosen)} FROM system_schema.dropped_columns"  # noqa: S608 - names from the schema
