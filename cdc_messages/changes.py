"""What the fold emits for a row: a RowChange, still in Cassandra's serialized values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from cassandra_storage.clustering import Clustering

# A visible row without its key: column name -> serialized value of a simple column, or the (path, value) pairs of a
# complex column in path order, never empty. A column that is null is absent.
ColumnImage: TypeAlias = bytes | tuple[tuple[bytes, bytes], ...]
RowImage: TypeAlias = Mapping[str, ColumnImage]

Op: TypeAlias = Literal["c", "u", "d"]
Cause: TypeAlias = Literal["write", "expiry", "schema"]


class Source(NamedTuple):
    """Where a change comes from: the message's largest write timestamp (µs) and its place in a node's commit log.

    incomplete: the row's partition lacked something, so that the row may not be what `SELECT` shows.
    """

    ts_us: int
    host: bytes
    file: str
    position: int
    cause: Cause = "write"
    incomplete: bool = False


class RowChange(NamedTuple):
    """One change of one visible row; `clustering` is None for the row of a partition that has only statics.

    `row_sequence` is one more with each change of the row; `schema` is the digest of the table schema whose columns the
    images have.
    """

    partition_key: bytes
    clustering: Clustering | None
    op: Op
    before: RowImage | None
    after: RowImage | None
    row_sequence: int
    source: Source
    schema: bytes = b""


def change_op(before: RowImage | None, after: RowImage | None) -> Op:
    """Of a change from one image to another."""
    return "c" if before is None else "d" if after is None else "u"
