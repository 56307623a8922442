"""Encodes and decodes messages of the internal topic.

The key is the group. The value has numbers as Avro's longs, and bytes with their length: the format version, kind,
flags and the number of the definition, the length of the join key in the key, the origin, the row's ident and its
columns.
"""

from __future__ import annotations

import cdc_native
from cdc_common.messages.avro.encoding import encode_bytes, encode_long, encode_string
from cdc_common.messages.avro.skipping import read_long
from joinery.joining.records import Group, Kind, Origin, Routed, Row
from stream_runtime.errors import check_format

IS_NATIVE = cdc_native.is_enabled()
if IS_NATIVE:
    from cdc_native.avro.routes import decode as native_decode

FORMAT_VERSION = 1
MAY_MISS, _HAS_MORE = 4, 8
DEFINITION_BITS = 4  # of the flags, below the number of the definition


_KINDS = {kind.value: kind for kind in Kind}


class CodecError(Exception):
    """A message that is none of the internal topic's."""


def encode(routed: Routed) -> tuple[bytes, bytes]:
    """The key and the value of a message."""
    (group, ident, columns), origin = routed.row, routed.origin
    flags = routed.kind.value | (MAY_MISS if routed.may_miss else 0) | (_HAS_MORE if routed.has_more else 0)
    flags |= routed.definition << DEFINITION_BITS
    numbers = (
        FORMAT_VERSION,
        flags,
        len(group.key),
        origin.input,
        origin.partition,
        origin.offset,
        origin.sequence,
        origin.ts_us,
    )
    value = (*map(encode_long, numbers), encode_string(origin.cause), encode_bytes(ident), encode_bytes(columns))
    return group.key + group.alone, b"".join(value)


def decode(key: bytes, value: bytes) -> Routed:
    """A message of its key and value. CodecError; CdcError STATE_FORMAT for one of a later version."""
    routed = _decode_any(key, value)
    if routed.kind is Kind.MARK and not _is_mark(routed.row):
        raise CodecError("it is not a message of the internal topic")
    return routed


def _is_mark(row: Row) -> bool:
    """Whether it has no key, and the number of partitions as its columns."""
    if row[:2] != (Group(b""), b"") or not row.columns:
        return False
    try:
        count, end = read_long(row.columns, 0)
    except (IndexError, ValueError):
        return False
    return count > 0 and end == len(row.columns)


def _decode_any(key: bytes, value: bytes) -> Routed:
    found = native_decode(key, value) if IS_NATIVE else None
    if found is not None and found[0] & 3 in _KINDS:
        flags, key_size, of, partition, offset, sequence, ts_us, cause, ident, columns = found
        row = Row(Group(key[:key_size], key[key_size:]), ident, columns)
        origin = Origin(of, partition, offset, sequence, ts_us, cause)
        has_more, definition = bool(flags & _HAS_MORE), flags >> DEFINITION_BITS
        return Routed(_KINDS[flags & 3], row, origin, bool(flags & MAY_MISS), has_more, definition)
    try:
        return _decode(key, value)
    except (IndexError, ValueError) as error:
        raise CodecError("it is not a message of the internal topic") from error


def _decode(key: bytes, value: bytes) -> Routed:
    version, at = read_long(value, 0)
    check_format("A message of the internal topic", version, FORMAT_VERSION)
    numbers = []
    for _ in range(7):
        number, at = read_long(value, at)
        numbers.append(number)
    parts = []
    for _ in range(3):
        length, at = read_long(value, at)
        if not 0 <= length <= len(value) - at:
            raise ValueError
        parts.append(value[at : at + length])
        at += length
    flags, key_size, *origin = numbers
    if at != len(value) or not 0 <= key_size <= len(key):
        raise ValueError
    cause, ident, columns = parts
    row = Row(Group(key[:key_size], key[key_size:]), ident, columns)
    of, partition, offset, sequence, ts_us = origin
    return Routed(
        Kind(flags & 3),
        row,
        Origin(of, partition, offset, sequence, ts_us, cause.decode()),
        bool(flags & MAY_MISS),
        bool(flags & _HAS_MORE),
        flags >> DEFINITION_BITS,
    )
