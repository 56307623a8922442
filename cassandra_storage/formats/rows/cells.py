"""Serialized cells (org.apache.cassandra.db.rows.Cell.Serializer).

Layout: flags, timestamp, local deletion time, TTL, path (cells of complex columns), value; each but the flags may be
absent. Functions may raise IndexError at the buffer's end; unfiltered's callers turn it into FormatError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.primitives.vint import SIZES, read_sized, write_sized
from cassandra_storage.formats.rows.clustering_prefix import VARIABLE, read_value, skip_value, write_value
from cassandra_storage.formats.rows.deletion import NO_DELETION_TIME, NO_TIMESTAMP, NO_TTL
from cassandra_storage.formats.rows.header import (
    decode_local_deletion_time,
    read_deletion_delta,
    read_timestamp,
    read_ttl,
    write_local_deletion_time,
    write_timestamp,
    write_ttl,
)
from cassandra_storage.formats.rows.row import Cell
from cassandra_storage.formats.types.counter import clear_marked

if TYPE_CHECKING:
    from cassandra_storage.formats.rows.deletion import LivenessInfo
    from cassandra_storage.formats.rows.header import ColumnLayout, EncodingStats, SerializationHeader

_IS_DELETED = 0x01
_IS_EXPIRING = 0x02
_HAS_EMPTY_VALUE = 0x04
_USE_ROW_TIMESTAMP = 0x08
_USE_ROW_TTL = 0x10


def read_cell(
    buf: bytes, pos: int, header: SerializationHeader, liveness: LivenessInfo, column: ColumnLayout
) -> tuple[Cell, int]:
    """Cell.Serializer.deserialize; `liveness` is that of the cell's row."""
    flags = buf[pos]
    pos += 1
    if flags & _USE_ROW_TIMESTAMP:
        timestamp = liveness.timestamp
    else:
        timestamp, pos = read_timestamp(buf, pos, header.stats)
    local_deletion_time, ttl = NO_DELETION_TIME, NO_TTL
    if flags & _USE_ROW_TTL:
        local_deletion_time, ttl = liveness.local_expiration_time, liveness.ttl
    elif flags & (_IS_DELETED | _IS_EXPIRING):
        local_deletion_time, pos = read_deletion_delta(buf, pos, header)
        if flags & _IS_EXPIRING:
            ttl, pos = read_ttl(buf, pos, header.stats)
        local_deletion_time = decode_local_deletion_time(local_deletion_time, ttl, header)
    path = None
    if column.is_complex:
        path, pos = read_sized(buf, pos)
    value = b""
    if not flags & _HAS_EMPTY_VALUE:
        value, pos = read_value(buf, pos, column.length)
        if column.is_counter and not flags & (_IS_DELETED | _IS_EXPIRING):
            value = clear_marked(value)
    return Cell(timestamp, value, local_deletion_time, ttl, path), pos


def skip_cell(buf: bytes, pos: int, stats: EncodingStats, column: ColumnLayout) -> int:
    """The position after the cell, which may lie past the buffer's end. What read_cell refuses, this does."""
    flags = buf[pos]
    pos += 1
    if not flags & _USE_ROW_TIMESTAMP:
        pos += SIZES[buf[pos]]
    if flags & (_IS_DELETED | _IS_EXPIRING) and not flags & _USE_ROW_TTL:
        pos += SIZES[buf[pos]]
        if flags & _IS_EXPIRING:
            _, pos = read_ttl(buf, pos, stats)
    if column.is_complex:
        pos = skip_value(buf, pos, VARIABLE)
    if flags & _HAS_EMPTY_VALUE:
        return pos
    if column.is_counter and not flags & (_IS_DELETED | _IS_EXPIRING):
        value, pos = read_value(buf, pos, column.length)
        clear_marked(value)
        return pos
    return skip_value(buf, pos, column.length)


def write_cell(cell: Cell, header: SerializationHeader, liveness: LivenessInfo, column: ColumnLayout) -> bytes:
    """Cell.Serializer.serialize."""
    is_deleted, is_expiring = cell.is_tombstone, cell.is_expiring
    flags = 0 if cell.value else _HAS_EMPTY_VALUE
    if is_deleted:
        flags |= _IS_DELETED
    elif is_expiring:
        flags |= _IS_EXPIRING
        if cell.ttl == liveness.ttl and cell.local_deletion_time == liveness.local_expiration_time:
            flags |= _USE_ROW_TTL
    parts = []
    if liveness.timestamp != NO_TIMESTAMP and cell.timestamp == liveness.timestamp:
        flags |= _USE_ROW_TIMESTAMP
    else:
        parts.append(write_timestamp(cell.timestamp, header.stats))
    if flags & (_IS_DELETED | _IS_EXPIRING) and not flags & _USE_ROW_TTL:
        parts.append(write_local_deletion_time(cell.local_deletion_time, header))
        if is_expiring:
            parts.append(write_ttl(cell.ttl, header.stats))
    if column.is_complex:
        assert cell.path is not None
        parts.append(write_sized(cell.path))
    if cell.value:
        parts.append(write_value(cell.value, column.length))
    return bytes((flags,)) + b"".join(parts)
