"""The tables of the keyspace system_schema itself (org.apache.cassandra.schema.SchemaKeyspace), which have the same ids
and column types in every version: what CREATE and ALTER write to the commit log can be read without asking a node.

Each has all columns that any of 3.11 to 5.0 has. An update names its own columns, so extra ones here do no harm.
"""

from __future__ import annotations

from hashlib import md5
from types import MappingProxyType
from typing import TYPE_CHECKING
from uuid import UUID

from cassandra_storage.formats.schema.schema_rows import in_order
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.cql_types import parse_type

if TYPE_CHECKING:
    from collections.abc import Mapping

KEYSPACE = "system_schema"
_GC_GRACE_SECONDS = 7 * 24 * 3600
_PARTITION_KEY = "keyspace_name"

_TEXT_MAP = "frozen<map<text, text>>"
_TEXT_LIST = "frozen<list<text>>"
_PARAMETERS = {
    "additional_write_policy": "text",
    "allow_auto_snapshot": "boolean",
    "auto_repair": _TEXT_MAP,
    "bloom_filter_fp_chance": "double",
    "caching": _TEXT_MAP,
    "cdc": "boolean",
    "comment": "text",
    "compaction": _TEXT_MAP,
    "compression": _TEXT_MAP,
    "crc_check_chance": "double",
    "dclocal_read_repair_chance": "double",
    "default_time_to_live": "int",
    "extensions": "frozen<map<text, blob>>",
    "gc_grace_seconds": "int",
    "id": "uuid",
    "incremental_backups": "boolean",
    "max_index_interval": "int",
    "memtable": "text",
    "memtable_flush_period_in_ms": "int",
    "min_index_interval": "int",
    "read_repair": "text",
    "read_repair_chance": "double",
    "speculative_retry": "text",
}
# By table: the clustering columns, then the regular ones, with their types.
_TABLES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "keyspaces": ({}, {"durable_writes": "boolean", "replication": _TEXT_MAP}),
    "tables": ({"table_name": "text"}, {**_PARAMETERS, "flags": "frozen<set<text>>"}),
    "columns": (
        {"table_name": "text", "column_name": "text"},
        {
            "clustering_order": "text",
            "column_name_bytes": "blob",
            "kind": "text",
            "position": "int",
            "type": "text",
        },
    ),
    "column_masks": (
        {"table_name": "text", "column_name": "text"},
        {
            "function_keyspace": "text",
            "function_name": "text",
            "function_argument_types": _TEXT_LIST,
            "function_argument_values": _TEXT_LIST,
            "function_argument_nulls": "frozen<list<boolean>>",
        },
    ),
    "dropped_columns": (
        {"table_name": "text", "column_name": "text"},
        {"dropped_time": "timestamp", "kind": "text", "type": "text"},
    ),
    "triggers": ({"table_name": "text", "trigger_name": "text"}, {"options": _TEXT_MAP}),
    "views": (
        {"view_name": "text"},
        {
            **_PARAMETERS,
            "base_table_id": "uuid",
            "base_table_name": "text",
            "include_all_columns": "boolean",
            "where_clause": "text",
        },
    ),
    "indexes": ({"table_name": "text", "index_name": "text"}, {"kind": "text", "options": _TEXT_MAP}),
    "types": ({"type_name": "text"}, {"field_names": _TEXT_LIST, "field_types": _TEXT_LIST}),
    "functions": (
        {"function_name": "text", "argument_types": _TEXT_LIST},
        {
            "argument_names": _TEXT_LIST,
            "body": "text",
            "language": "text",
            "return_type": "text",
            "called_on_null_input": "boolean",
        },
    ),
    "aggregates": (
        {"aggregate_name": "text", "argument_types": _TEXT_LIST},
        {
            "final_func": "text",
            "initcond": "text",
            "return_type": "text",
            "state_func": "text",
            "state_type": "text",
        },
    ),
}


def system_table_id(keyspace: str, table: str) -> UUID:
    """TableId.forSystemTable, CFMetaData.generateLegacyCfId: a name-based UUID without a name space."""
    return UUID(bytes=md5((keyspace + table).encode(), usedforsecurity=False).digest(), version=3)


def _table(name: str, clustering: Mapping[str, str], regular: Mapping[str, str]) -> TableMetadata:
    def column(column_name: str, type_text: str, kind: ColumnKind, position: int = -1) -> ColumnMetadata:
        return ColumnMetadata(column_name, parse_type(type_text, KEYSPACE, {}), kind, position)

    return TableMetadata(
        KEYSPACE,
        name,
        system_table_id(KEYSPACE, name),
        partition_key=(column(_PARTITION_KEY, "text", ColumnKind.PARTITION_KEY, 0),),
        clustering=tuple(
            column(column_name, text, ColumnKind.CLUSTERING, position)
            for position, (column_name, text) in enumerate(clustering.items())
        ),
        regular_columns=in_order(column(*item, ColumnKind.REGULAR) for item in regular.items()),
        gc_grace_seconds=_GC_GRACE_SECONDS,
    )


SCHEMA_TABLES: Mapping[bytes, TableMetadata] = MappingProxyType(
    {table.id.bytes: table for table in (_table(name, *columns) for name, columns in _TABLES.items())}
)
"""The tables of system_schema by the 16 bytes of their ids."""
