"""Serialized mutations (org.apache.cassandra.db.Mutation.MutationSerializer): a count, and then the partition updates.

All updates of a mutation are of one keyspace and one partition key, each of another table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives.vint import read_int, read_sized
from cassandra_storage.formats.rows.partition_update import (
    SingleRowUpdate,
    read_partition_update,
    split_partition_update,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassandra_storage.formats.rows.partition import PartitionUpdate
    from cassandra_storage.formats.schema.tables import TableMetadata


def read_mutation(
    buf: bytes, messaging_version: int, tables: Mapping[bytes, TableMetadata]
) -> tuple[PartitionUpdate, ...]:
    """The updates of the mutation that fills `buf`; errors as read_partition_update."""
    return tuple(update for update, _ in read_updates(buf, messaging_version, tables))


def read_updates(
    buf: bytes, messaging_version: int, tables: Mapping[bytes, TableMetadata]
) -> list[tuple[PartitionUpdate, int]]:
    """Return the updates that read_mutation returns, each with its number of bytes."""
    count, pos = read_count(buf)
    updates = []
    for _ in range(count):
        start = pos
        update, pos = read_partition_update(buf, start, messaging_version, tables)
        updates.append((update, pos - start))
    _check_end(buf, pos)
    return updates


def split_mutation(
    buf: bytes, messaging_version: int, tables: Mapping[bytes, TableMetadata]
) -> list[tuple[TableMetadata, list[SingleRowUpdate]]]:
    """The single-row parts of the mutation that fills `buf`, by update; errors as read_partition_update.

    Rows carry no size: an update of an unknown table or column cannot be stepped over, and makes the whole mutation
    raise. Nothing of it is given out before all of it is read.
    """
    count, pos = read_count(buf)
    updates = []
    for _ in range(count):
        parts, table, pos = split_partition_update(buf, pos, messaging_version, tables)
        updates.append((table, parts))
    _check_end(buf, pos)
    return updates


def first_table(buf: bytes) -> bytes:
    """The id of the table of a mutation's first update, found without reading it."""
    _, pos = read_count(buf)
    return buf[pos : pos + 16]


def partition_key(buf: bytes) -> bytes:
    """The partition key, which all updates of a mutation share, found without reading them. FormatError."""
    _, pos = read_count(buf)
    try:
        return read_sized(buf, pos + 16)[0]
    except IndexError:
        raise FormatError("the mutation ends in its key", position=len(buf)) from None


def only_table(buf: bytes) -> bytes | None:
    """The id of the one table that a mutation is of, found without reading it; None if it is of several."""
    count, pos = read_count(buf)
    return buf[pos : pos + 16] if count == 1 else None


def read_count(buf: bytes) -> tuple[int, int]:
    count, pos = read_int(buf, 0)
    if count <= 0:
        raise FormatError(f"mutation of {count} updates", position=0)
    return count, pos


def _check_end(buf: bytes, pos: int) -> None:
    if pos != len(buf):
        raise FormatError("bytes after a mutation's end", position=pos)
