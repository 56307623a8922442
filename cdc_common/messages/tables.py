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
from hashlib import sha256
from typing import TYPE_CHECKING

from cassandra_storage.formats.json_forms.tables import (
    FORMAT_VERSION,
    READABLE_VERSIONS,
    described_table,
    table_to_json,
)
from cdc_common.messages.errors import MessageError, check_version

if TYPE_CHECKING:
    from cassandra_storage.formats.schema.tables import TableMetadata

DIGEST_SIZE = 16
TABLE_ID_SIZE = 16
_REQUEST = b"snapshot"


def canonical(table: TableMetadata) -> bytes:
    """The input of the digest: compact JSON in UTF-8 with sorted keys, statics and regulars in Cassandra's order."""
    return _dump(table_to_json(table))


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
            "table": table_to_json(table),
        }
    )


def from_json(value: bytes) -> TableMetadata:
    """The table of a message's value; MessageError if it is damaged or of a version that this build does not read."""
    try:
        message = json.loads(value)
        check_version(message["format_version"], READABLE_VERSIONS, "table schema")
        return described_table(message)
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
    is_request = len(key) == TABLE_ID_SIZE + len(_REQUEST) and key.endswith(_REQUEST)
    return key[:TABLE_ID_SIZE] if is_request else None


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
