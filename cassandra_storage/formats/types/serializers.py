"""Values of CQL's native types (org.apache.cassandra.serializers): bytes to Python.

A decoder takes a serialized value and gives None for an empty one where the type allows it; anything that Cassandra's
own serializer would refuse raises FormatError.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable
from typing import NamedTuple, TypeAlias
from uuid import UUID

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives.vint import read_vint
from cassandra_storage.formats.types import counter

Decoder: TypeAlias = Callable[[bytes], object]

_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_DATE_EPOCH = 2**31  # SimpleDateSerializer: 1970-01-01 as an unsigned int


class BigDecimal(NamedTuple):
    """java.math.BigDecimal: `unscaled` * 10 ** -`scale`."""

    # The digits, with the sign.
    unscaled: int
    # The number of digits after the decimal point; negative for zeros before it.
    scale: int


class Duration(NamedTuple):
    """org.apache.cassandra.cql3.Duration: the three are of one sign."""

    # The months.
    months: int
    # The days.
    days: int
    # The nanoseconds.
    nanoseconds: int


def _malformed(name: str, value: bytes) -> FormatError:
    return FormatError(f"a {name} of {len(value)} bytes")


def _integer(name: str, size: int, *, allows_empty: bool, offset: int = 0) -> Decoder:
    """Two's complement of `size` bytes, less `offset`."""

    def decode(value: bytes) -> int | None:
        if len(value) == size:
            return int.from_bytes(value, "big", signed=not offset) - offset
        if allows_empty and not value:
            return None
        raise _malformed(name, value)

    return decode


def _floating(name: str, layout: str) -> Decoder:
    unpack = struct.Struct(layout).unpack
    size = struct.calcsize(layout)

    def decode(value: bytes) -> float | None:
        if len(value) == size:
            (number,) = unpack(value)
            return float(number)
        if not value:
            return None
        raise _malformed(name, value)

    return decode


def _text(name: str, encoding: str) -> Decoder:
    def decode(value: bytes) -> str:
        try:
            return value.decode(encoding)
        except UnicodeDecodeError as error:
            raise FormatError(f"a {name} that is not {encoding}", position=error.start) from None

    return decode


def _blob(value: bytes) -> bytes:
    return value


def _boolean(value: bytes) -> bool | None:
    if len(value) == 1:
        return value != b"\x00"
    if not value:
        return None
    raise _malformed("boolean", value)


def _uuid(value: bytes) -> UUID | None:
    if len(value) == 16:
        return UUID(bytes=value)
    if not value:
        return None
    raise _malformed("uuid", value)


def _timeuuid(value: bytes) -> UUID | None:
    if len(value) == 16 and value[6] >> 4 != 1:
        raise FormatError("a timeuuid that is not of version 1")
    return _uuid(value)


def _varint(value: bytes) -> int | None:
    return int.from_bytes(value, "big", signed=True) if value else None


def _decimal(value: bytes) -> BigDecimal | None:
    if not value:
        return None
    if len(value) < 5:
        raise _malformed("decimal", value)
    return BigDecimal(
        int.from_bytes(value[4:], "big", signed=True),
        int.from_bytes(value[:4], "big", signed=True),
    )


def _inet(value: bytes) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    match len(value):
        case 4:
            return ipaddress.IPv4Address(value)
        case 16:
            return ipaddress.IPv6Address(value)
        case 0:
            return None
    raise _malformed("inet", value)


def _duration(value: bytes) -> Duration:
    months, position = read_vint(value, 0)
    days, position = read_vint(value, position)
    nanoseconds, _ = read_vint(value, position)
    duration = Duration(months, days, nanoseconds)
    if not (_INT32_MIN <= months <= _INT32_MAX and _INT32_MIN <= days <= _INT32_MAX):
        raise FormatError("a duration whose months or days exceed 32 bits")
    if min(duration) < 0 < max(duration):
        raise FormatError("a duration of mixed signs")
    return duration


def _counter(value: bytes) -> int | None:
    return counter.total(value) if value else None


def _empty(value: bytes) -> None:
    if value:
        raise _malformed("value of type empty", value)


NATIVE_DECODERS: dict[str, Decoder] = {
    "ascii": _text("ascii", "ascii"),
    "bigint": _integer("bigint", 8, allows_empty=True),
    "blob": _blob,
    "boolean": _boolean,
    "counter": _counter,
    "date": _integer("date", 4, allows_empty=False, offset=_DATE_EPOCH),
    "decimal": _decimal,
    "double": _floating("double", ">d"),
    "duration": _duration,
    "empty": _empty,
    "float": _floating("float", ">f"),
    "inet": _inet,
    "int": _integer("int", 4, allows_empty=True),
    "smallint": _integer("smallint", 2, allows_empty=False),
    "text": _text("text", "utf-8"),
    "time": _integer("time", 8, allows_empty=False),
    "timestamp": _integer("timestamp", 8, allows_empty=True),
    "timeuuid": _timeuuid,
    "tinyint": _integer("tinyint", 1, allows_empty=False),
    "uuid": _uuid,
    "varint": _varint,
}
"""Every native type by CQL name; `text` stands for varchar."""
