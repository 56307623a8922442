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
    """The origin of a change: its largest write timestamp (µs) and its place in a node's commit log.

    `cause`: "expired_write" is a write that arrived after something in it had expired; the "expiry" follows at once.
    `incomplete`: a mutation of the row's Cassandra partition is missing, or a snapshot of the table is running, so the
    row may differ from `SELECT`'s. `snapshot`: a snapshot's row image made the change; then `file` and `position` are
    the snapshot's and its unit's. A change with the cause "moved" is a row's end in a change topic that the table has
    left, or its beginning in the next one; `file` is the other topic's name. "resent" is a row that is sent again to a
    change topic that was deleted and created again.
    """

    ts_us: int
    host: bytes
    file: str
    position: int
    cause: Cause = "write"
    incomplete: bool = False
    snapshot: bool = False


class RowChange(NamedTuple):
    """One change of one visible row; `clustering` is None for the row of a Cassandra partition with only statics.

    `row_sequence` increases by one with each change of the row. `schema` is the digest of the table schema of the
    images' columns. `topic`: where it goes; None for the topic that the state names for the schema's table.
    """

    partition_key: bytes
    clustering: Clustering | None
    op: Op
    before: RowImage | None
    after: RowImage | None
    row_sequence: int
    source: Source
    schema: bytes = b""
    topic: Topic | None = None


def change_op(before: RowImage | None, after: RowImage | None, *, is_snapshot: bool = False) -> Op:
    """The operation that changes one image into another; is_snapshot: a snapshot's row image does."""
    if before is None:
        return "r" if is_snapshot else "c"
    return "d" if after is None else "u"
