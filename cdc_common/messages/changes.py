"""The change of a row that the fold emits: a RowChange, with values in Cassandra's serialization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from cassandra_storage.formats.rows.clustering import Clustering
from cdc_common.messages.topics import Topic

# A visible row without its key: column name -> serialized value of a simple column, or the (path, value) pairs of a
# complex column in path order, never empty. A column that is null is absent.
ColumnImage: TypeAlias = bytes | tuple[tuple[bytes, bytes], ...]
RowImage: TypeAlias = Mapping[str, ColumnImage]

Op: TypeAlias = Literal["c", "u", "d", "r"]
Cause: TypeAlias = Literal[
    "write", "expired_write", "expiry", "schema", "truncate", "drop", "repair", "moved", "resent"
]


class Source(NamedTuple):
    """The origin of a change."""

    # The largest write timestamp of the change, in µs.
    ts_us: int
    # The id of the node whose commit log has it, 16 bytes.
    host: bytes
    # The name of the commit log segment. Of a snapshot: messages.snapshots.file_name. Of "moved": the name of the other
    # change topic.
    file: str
    # The offset of the mutation in the segment, in bytes. Of a snapshot: the number of the unit.
    position: int
    # The reason of the change. "expired_write": a write that arrived after something in it had expired; the "expiry"
    # follows at once. "moved": a row's end in a change topic that the table has left, or its beginning in the next one.
    # "resent": a row that is sent again to a change topic that was deleted and created again.
    cause: Cause = "write"
    # Whether the row may differ from `SELECT`'s: a mutation of its Cassandra partition is missing, or a snapshot of the
    # table is running.
    incomplete: bool = False
    # Whether a snapshot's row image made the change.
    snapshot: bool = False


class RowChange(NamedTuple):
    """One change of one visible row."""

    # The serialized partition key.
    partition_key: bytes
    # The serialized values of the clustering columns; None for the row of a Cassandra partition with only statics.
    clustering: Clustering | None
    # The kind of change, as in Debezium.
    op: Op
    # The row before the change; None if there was none.
    before: RowImage | None
    # The row after the change; None if there is none.
    after: RowImage | None
    # A number that increases by one with each change of the row.
    row_sequence: int
    # The origin of the change.
    source: Source
    # The digest of the table schema of the images' columns, 16 bytes.
    schema: bytes = b""
    # The change topic; None for the one that the state names for the schema's table.
    topic: Topic | None = None


def change_op(before: RowImage | None, after: RowImage | None, *, is_snapshot: bool = False) -> Op:
    """The operation that changes one image into another; is_snapshot: a snapshot's row image does."""
    if before is None:
        return "r" if is_snapshot else "c"
    return "d" if after is None else "u"
