"""Avro's binary encoding of the few types in change messages.

CQL's serialized values are close to Avro's: a text, blob or varint needs only a length prefix, a double needs its bytes
reversed. Encoding from bytes to bytes takes 40 % of the time of Python values and a schema walk
(decision 0003). The tests compare the result with Avro's own readers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

NULL = b"\x00"  # branch 0 of a union with null, which is always the first
VALUE = b"\x02"  # branch 1
TRUE, FALSE = b"\x01", b"\x00"
END = b"\x00"  # the end of an array's or a map's blocks


# Fourteen bits at a time, the lowest first: two bytes with more to come, and the one or two bytes that end a number.
_MORE = tuple(bytes((bits & 0x7F | 0x80, bits >> 7 | 0x80)) for bits in range(1 << 14))
_LAST = tuple(bytes((bits,)) if bits < 1 << 7 else bytes((bits & 0x7F | 0x80, bits >> 7)) for bits in range(1 << 14))


def encode_long(number: int) -> bytes:
    """An int or a long (64 bits): zigzag, then seven bits a byte, the lowest first."""
    bits = (number << 1) ^ (number >> 63)
    encoded = b""
    while bits >= 1 << 14:
        encoded += _MORE[bits & 0x3FFF]
        bits >>= 14
    return encoded + _LAST[bits]


def encode_bytes(value: bytes) -> bytes:
    """Bytes, and a string given in UTF-8."""
    return encode_long(len(value)) + value


def encode_string(value: str) -> bytes:
    return encode_bytes(value.encode())


def encode_array(items: Sequence[bytes]) -> bytes:
    """An array of encoded items in one block; a map of keys and values encoded side by side."""
    return b"".join((encode_long(len(items)), *items, END)) if items else END
