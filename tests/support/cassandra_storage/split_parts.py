"""Checks the parts of a split update."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cassandra_storage.formats.primitives.vint import read_sized
from cassandra_storage.formats.rows.header import SerializationHeader, read_stats, table_codec
from cassandra_storage.formats.rows.partition import PartitionUpdate
from cassandra_storage.formats.rows.partition_update import SingleRowUpdate, read_partition_update
from cassandra_storage.formats.rows.unfiltered import write_row
from cassandra_storage.formats.versions import VERSION_40, VERSION_50, messaging_format

if TYPE_CHECKING:
    from cassandra_storage.formats.schema.tables import TableMetadata


def joined(parts: list[SingleRowUpdate], table: TableMetadata, partition_key: bytes, version: int) -> PartitionUpdate:
    """The update that the parts make together; each is checked to hold just what its kind says."""
    empty = PartitionUpdate(table, partition_key)
    whole = empty
    for part in parts:
        read, end = read_partition_update(part.update, 0, version, {table.id.bytes: table})
        assert end == len(part.update)
        assert part.partition_key == partition_key
        match part.kind:
            case "row":
                assert read == empty._replace(rows=read.rows[:1])
            case "static":
                assert read == empty._replace(static_row=read.static_row)
            case "partition_deletion":
                assert read == empty._replace(deletion=read.deletion)
            case "range_deletion":
                assert read == empty._replace(range_tombstones=read.range_tombstones[:1])
        whole = whole._replace(
            deletion=read.deletion if not read.deletion.is_live else whole.deletion,
            static_row=read.static_row or whole.static_row,
            rows=whole.rows + read.rows,
            range_tombstones=whole.range_tombstones + read.range_tombstones,
        )
    return whole


def header_of(update: bytes, table: TableMetadata, version: int) -> SerializationHeader:
    """The header that an update carries."""
    _, pos = read_sized(update, 16)
    is_static = bool(update[pos] & 0x08)
    stats, pos = read_stats(update, pos + 1)
    codec = table_codec(table)
    statics, pos = codec.read_columns(update, pos, is_static=True) if is_static else (None, pos)
    regulars, pos = codec.read_columns(update, pos, is_static=False)
    header = SerializationHeader.of_table(table, stats, version)
    return header._replace(
        static_columns=statics or header.static_columns,
        regular_columns=regulars,
    )


def is_rewritten(part: SingleRowUpdate, table: TableMetadata, version: int) -> bool:
    """Return whether a row or static part's row, read and written again, gives the same bytes. 5.0 writes its own mark
    of no deletion also into version 12.
    """
    read, _ = read_partition_update(part.update, 0, version, {table.id.bytes: table})
    row = read.static_row if part.kind == "static" else read.rows[0]
    assert row is not None
    header = header_of(part.update, table, version)
    headers = [header]
    if version == VERSION_40:
        of_50 = replace(header.format, no_deletion_time=messaging_format(VERSION_50).no_deletion_time)
        headers.append(header._replace(format=of_50))
    end = b"\x00\x01" if part.kind == "static" else b"\x01"
    return any(
        part.update.endswith(write_row(row, header, is_static=part.kind == "static") + end) for header in headers
    )
