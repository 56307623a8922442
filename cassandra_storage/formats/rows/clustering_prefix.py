"""Serialized clusterings and bounds (org.apache.cassandra.db.ClusteringPrefix.Serializer, ClusteringBoundOrBoundary).

`lengths` holds one number for each clustering column: the length of its values where that is fixed, otherwise VARIABLE.
Functions may raise IndexError at the buffer's end; their callers in this package turn it into FormatError.
"""

from __future__ import annotations

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives.vint import read_sized, read_unsigned_vint, write_sized, write_unsigned_vint
from cassandra_storage.formats.rows.clustering import Clustering, ClusteringBound, Kind

VARIABLE = -1  # AbstractType.VARIABLE_LENGTH

_BATCH = 32  # values that share one vint of 2 bits each: bit 0 empty, bit 1 null
_KINDS = tuple(Kind)


def read_values(buf: bytes, pos: int, lengths: tuple[int, ...], count: int) -> tuple[Clustering, int]:
    """deserializeValuesWithoutSize of the first `count` clustering columns; none has no header."""
    values: list[bytes | None] = []
    header = 0
    for index in range(count):
        if index % _BATCH == 0:
            header, pos = read_unsigned_vint(buf, pos)
        if header & 3:
            values.append(None if header & 2 else b"")
        else:
            value, pos = read_value(buf, pos, lengths[index])
            values.append(value)
        header >>= 2
    return tuple(values), pos


def skip_values(buf: bytes, pos: int, lengths: tuple[int, ...], count: int) -> int:
    """skipValuesWithoutSize: the position after the values, which may lie past the buffer's end."""
    header = 0
    for index in range(count):
        if index % _BATCH == 0:
            header, pos = read_unsigned_vint(buf, pos)
        if not header & 3:
            pos = skip_value(buf, pos, lengths[index])
        header >>= 2
    return pos


def write_values(values: Clustering, lengths: tuple[int, ...]) -> bytes:
    """serializeValuesWithoutSize."""
    parts = []
    for start in range(0, len(values), _BATCH):
        batch = values[start : start + _BATCH]
        header = 0
        for index, value in enumerate(batch):
            if not value:
                header |= (2 if value is None else 1) << (2 * index)
        parts.append(write_unsigned_vint(header))
        parts.extend(
            write_value(value, length)
            for value, length in zip(batch, lengths[start : start + _BATCH], strict=True)
            if value
        )
    return b"".join(parts)


def read_value(buf: bytes, pos: int, length: int) -> tuple[bytes, int]:
    """AbstractType.read: one value that is not empty."""
    if length == VARIABLE:
        length = buf[pos]
        if length >= 0x80:
            return read_sized(buf, pos)
        pos += 1
    end = pos + length
    if end > len(buf):
        raise FormatError(f"value of {length} bytes reaches past the end", position=pos)
    return buf[pos:end], end


def skip_value(buf: bytes, pos: int, length: int) -> int:
    """AbstractType.skipValue: the position after the value, which may lie past the buffer's end."""
    if length != VARIABLE:
        return pos + length
    size = buf[pos]
    if size < 0x80:
        return pos + 1 + size
    size, start = read_unsigned_vint(buf, pos)
    if size > len(buf):
        raise FormatError(f"length {size} reaches past the end", position=pos)
    return start + size


def write_value(value: bytes, length: int) -> bytes:
    """AbstractType.writeValue of a value that is not empty."""
    if length == VARIABLE:
        return write_sized(value)
    if len(value) != length:
        raise ValueError(f"a value of a type of {length} bytes has {len(value)}")
    return value


def read_bound(buf: bytes, pos: int, lengths: tuple[int, ...]) -> tuple[Kind, Clustering, int]:
    """ClusteringBoundOrBoundary.Serializer.deserialize: (kind, values, position after them)."""
    kind, count = _bound_head(buf, pos, lengths)
    values, pos = read_values(buf, pos + 3, lengths, count)
    return kind, values, pos


def skip_bound(buf: bytes, pos: int, lengths: tuple[int, ...]) -> tuple[Kind, int]:
    kind, count = _bound_head(buf, pos, lengths)
    return kind, skip_values(buf, pos + 3, lengths, count)


def write_bound(bound: ClusteringBound, lengths: tuple[int, ...]) -> bytes:
    """ClusteringBoundOrBoundary.Serializer.serialize."""
    head = bytes((bound.kind,)) + len(bound.values).to_bytes(2, "big")
    return head + write_values(bound.values, lengths[: len(bound.values)])


def _bound_head(buf: bytes, pos: int, lengths: tuple[int, ...]) -> tuple[Kind, int]:
    kind = buf[pos]
    if kind >= len(_KINDS) or kind in (Kind.STATIC_CLUSTERING, Kind.CLUSTERING):
        raise FormatError(f"bound of unknown kind {kind}", position=pos)
    count = buf[pos + 1] << 8 | buf[pos + 2]
    if count > len(lengths):
        raise FormatError(f"bound of {count} values in a table of {len(lengths)} clustering columns", position=pos)
    return _KINDS[kind], count
