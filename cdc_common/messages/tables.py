"""Table schemas as messages of the compacted topic `<prefix>.tables`.

key: the table's id (16 bytes) and the digest (16 bytes). Value: JSON, `{"altered_at_us", "cluster", "format_version",
"gc_grace_seconds", "table"}`. The digest is of `table` alone, in a canonical form that is the same for every version of
Cassandra: it has only what decoding and the Avro schemas need. So a changed gc_grace_seconds is a new value of the same
key.

A key that is only the table's id has a snapshot mark: `{"format_version", "needs_snapshot_since_us"}`; 0
when all hosts of a snapshot have ended.

A key of the table's id and `snapshot` has a request of the materializer to the publishers: `{"format_version",
"rows_lost_at_us"}`. Since that time its state lacks rows of a host that did not take part in a TRUNCATE. 0 means that
it lacks none any more (decision 0035).
"""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from uuid import UUID

from cassandra_storage.schema import ColumnKind, ColumnMetadata, DroppedColumn, TableMetadata
from cassandra_storage.schema_rows import in_order
from cdc_common.messages.errors import MessageError, check_version
from cdc_messages.types_json import type_from_json, type_to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FORMAT_VERSION = 1
READABLE_VERSIONS = range(1, FORMAT_VERSION + 1)  # there is no version before 1
DIGEST_SIZE = 16
_TABLE_ID_SIZE = 16
_REQUEST = b"snapshot"


def canonical(table: TableMetadata) -> bytes:
    """The input of the digest: compact JSON in UTF-8 with sorted keys, statics and regulars in Cassandra's order."""
    return _dump(_table_to_json(table))


def digest(canonical_json: bytes) -> bytes:
    """The first 16 bytes of the SHA-256 of a table's canonical form."""
    return sha256(canonical_json).digest()[:DIGEST_SIZE]


def message_key(table: TableMetadata) -> bytes:
    """The key in the topic of table schemas: table id and digest, 32 bytes."""
    return table.id.bytes + digest(canonical(table))


def to_json(table: TableMetadata, cluster: str = "") -> bytes:
    """The value in the topic of table schemas; `cluster` is the Cassandra cluster's name."""
    return _dump(
        {
            "altered_at_us": table.altered_at,
            "cluster": cluster,
            "format_version": FORMAT_VERSION,
            "gc_grace_seconds": table.gc_grace_seconds,
            "table": _table_to_json(table),
        }
    )


def from_json(value: bytes) -> TableMetadata:
    """The table of a message's value; MessageError if it is damaged or of a version that this build does not read."""
    try:
        message = json.loads(value)
        check_version(message["format_version"], READABLE_VERSIONS, "table schema")
        table = _table_from_json(message["table"], int(message["gc_grace_seconds"]))
        return replace(table, altered_at=int(message.get("altered_at_us", 0)))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise MessageError(f"damaged table schema: {type(error).__name__}: {error}") from error


def mark_to_json(since: int) -> bytes:
    """The value of a snapshot mark: changes of the table are missing until a snapshot has ended that is asked for after
    `since` (µs); 0 clears the mark.
    """
    return _dump({"format_version": FORMAT_VERSION, "needs_snapshot_since_us": since})


def mark_from_json(value: bytes) -> int:
    """The time (µs) of a snapshot mark, 0 if it is cleared; MessageError if the value is not one."""
    try:
        message = json.loads(value)
        check_version(message["format_version"], READABLE_VERSIONS, "table mark")
        return int(message["needs_snapshot_since_us"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MessageError(f"damaged table mark: {type(error).__name__}: {error}") from error


def request_to_json(lost_at: int) -> bytes:
    """The value of the materializer's request for a snapshot: the first time of missing rows (µs); 0 for none."""
    return _dump({"format_version": FORMAT_VERSION, "rows_lost_at_us": lost_at})


def request_from_json(value: bytes) -> int:
    """The time (µs) of a request, 0 if there is none any more; MessageError if the value is not one."""
    try:
        message = json.loads(value)
        check_version(message["format_version"], READABLE_VERSIONS, "snapshot request")
        return int(message["rows_lost_at_us"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MessageError(f"damaged snapshot request: {type(error).__name__}: {error}") from error


def request_key(table_id: bytes) -> bytes:
    """The key of the request for a snapshot of a table."""
    return table_id + _REQUEST


def requested_table(key: bytes) -> bytes | None:
    """The id of the table whose request has this key; None for another key."""
    is_request = len(key) == _TABLE_ID_SIZE + len(_REQUEST) and key.endswith(_REQUEST)
    return key[:_TABLE_ID_SIZE] if is_request else None


def cluster_name(value: bytes) -> str:
    """The name of the cluster in a message's value. Empty if there is none: in a snapshot mark, in a request for one,
    and in what no publisher has written, which the materializer refuses.
    """
    try:
        return str(json.loads(value).get("cluster", ""))
    except (ValueError, AttributeError):
        return ""


def _dump(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _table_to_json(table: TableMetadata) -> dict[str, Any]:
    return {
        "id": str(table.id),
        "keyspace": table.keyspace,
        "name": table.name,
        "partition_key": [_column_to_json(column) for column in table.partition_key],
        "clustering": [_column_to_json(column) for column in table.clustering],
        "static": [_column_to_json(column) for column in in_order(table.static_columns)],
        "regular": [_column_to_json(column) for column in in_order(table.regular_columns)],
        "dropped": {
            name: {**_column_to_json(dropped.column), "kind": dropped.column.kind, "time_us": dropped.dropped_time}
            for name, dropped in table.dropped_columns.items()
        },
        "flags": sorted(table.flags),
    }


def _table_from_json(value: Mapping[str, Any], gc_grace_seconds: int) -> TableMetadata:
    return TableMetadata(
        keyspace=value["keyspace"],
        name=value["name"],
        id=UUID(value["id"]),
        partition_key=_columns_from_json(value["partition_key"], ColumnKind.PARTITION_KEY),
        clustering=_columns_from_json(value["clustering"], ColumnKind.CLUSTERING),
        static_columns=_columns_from_json(value["static"], ColumnKind.STATIC),
        regular_columns=_columns_from_json(value["regular"], ColumnKind.REGULAR),
        dropped_columns=MappingProxyType(
            {name: _dropped_from_json(dropped) for name, dropped in value["dropped"].items()}
        ),
        flags=frozenset(value["flags"]),
        gc_grace_seconds=gc_grace_seconds,
    )


def _column_to_json(column: ColumnMetadata) -> dict[str, Any]:
    value: dict[str, Any] = {"name": column.name, "type": type_to_json(column.type)}
    if column.is_reversed:
        value["reversed"] = True
    return value


def _columns_from_json(values: Iterable[Mapping[str, Any]], kind: ColumnKind) -> tuple[ColumnMetadata, ...]:
    has_position = kind in (ColumnKind.PARTITION_KEY, ColumnKind.CLUSTERING)
    return tuple(_column_from_json(value, kind, index if has_position else -1) for index, value in enumerate(values))


def _column_from_json(value: Mapping[str, Any], kind: ColumnKind, position: int) -> ColumnMetadata:
    return ColumnMetadata(value["name"], type_from_json(value["type"]), kind, position, value.get("reversed", False))


def _dropped_from_json(value: Mapping[str, Any]) -> DroppedColumn:
    return DroppedColumn(_column_from_json(value, ColumnKind(value["kind"]), -1), int(value["time_us"]))
