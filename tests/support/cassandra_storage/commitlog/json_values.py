"""Values back from their JSON, to show that it loses nothing: written from docs/guides/inspect-commit-logs.md alone."""

from __future__ import annotations

import ipaddress
import re
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from cassandra_storage.formats.primitives.vint import write_unsigned_vint, write_vint
from cassandra_storage.formats.types.marshal import (
    CqlType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
    fixed_length,
)

if TYPE_CHECKING:
    from collections.abc import Callable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NANOSECONDS = {"h": 3_600_000_000_000, "m": 60_000_000_000, "s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}


def serialized(type_: CqlType, shown: Any) -> bytes:  # noqa: ANN401, PLR0911  any JSON, of each kind of type
    """The serialized value of the type that is shown so."""
    if isinstance(shown, dict) and shown.keys() == {"$raw"}:
        return bytes.fromhex(shown["$raw"][2:])
    if shown == "":
        return b""
    match type_:
        case ListType(of, _) | SetType(of, _):
            return collection([serialized(of, item) for item in shown], len(shown))
        case MapType(keys, values, _):
            pairs = shown.items() if isinstance(shown, dict) else shown
            flat = [part for key, value in pairs for part in (serialized(keys, key), serialized(values, value))]
            return collection(flat, len(flat) // 2)
        case TupleType(types):
            return b"".join(field(of, item) for of, item in zip(types, shown, strict=False))
        case UserType():
            of_field = dict(zip(type_.field_names, type_.field_types, strict=True))
            return b"".join(field(of_field[name], item) for name, item in shown.items())
        case VectorType(of, _):
            parts = [serialized(of, item) for item in shown]
            is_fixed = fixed_length(of) is not None
            return b"".join(part if is_fixed else write_unsigned_vint(len(part)) + part for part in parts)
        case NativeType(name):
            return NATIVE[name](shown)
    return bytes.fromhex(shown[2:])


def collection(parts: list[bytes], count: int) -> bytes:
    return struct.pack(">i", count) + b"".join(struct.pack(">i", len(part)) + part for part in parts)


def field(type_: CqlType, shown: Any) -> bytes:  # noqa: ANN401  any JSON
    if shown is None:
        return struct.pack(">i", -1)
    value = serialized(type_, shown)
    return struct.pack(">i", len(value)) + value


def integer(size: int) -> Callable[[int], bytes]:
    return lambda number: number.to_bytes(size, "big", signed=True)


def varint(number: int) -> bytes:
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(size, "big", signed=True)


def decimal(text: str) -> bytes:
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    unscaled = int("".join(map(str, digits)))
    return struct.pack(">i", -exponent) + varint(-unscaled if sign else unscaled)


def timestamp(shown: str | int) -> bytes:
    if isinstance(shown, str):
        shown = (datetime.fromisoformat(shown) - EPOCH) // timedelta(milliseconds=1)
    return shown.to_bytes(8, "big", signed=True)


def days(shown: str | int) -> bytes:
    if isinstance(shown, str):
        shown = (date.fromisoformat(shown) - EPOCH.date()).days
    return (shown + 2**31).to_bytes(4, "big")


def time(shown: str | int) -> bytes:
    if isinstance(shown, str):
        hours, minutes, seconds, nanoseconds = map(int, re.split("[:.]", shown))
        shown = (hours * 3600 + minutes * 60 + seconds) * 10**9 + nanoseconds
    return shown.to_bytes(8, "big", signed=True)


def duration(shown: str) -> bytes:
    parts = {unit: int(count) for count, unit in re.findall(r"(\d+)([a-z]+)", shown)}
    sign = -1 if shown.startswith("-") else 1
    months = 12 * parts.get("y", 0) + parts.get("mo", 0)
    nanoseconds = sum(parts.get(unit, 0) * size for unit, size in NANOSECONDS.items())
    return b"".join(write_vint(sign * count) for count in (months, parts.get("d", 0), nanoseconds))


NATIVE: dict[str, Callable[[Any], bytes]] = {
    "ascii": str.encode,
    "text": str.encode,
    "tinyint": integer(1),
    "smallint": integer(2),
    "int": integer(4),
    "bigint": integer(8),
    "boolean": lambda shown: bytes((shown,)),
    "float": lambda shown: struct.pack(">f", float(shown)),
    "double": lambda shown: struct.pack(">d", float(shown)),
    "blob": lambda shown: bytes.fromhex(shown[2:]),
    "varint": varint,
    "uuid": lambda shown: UUID(shown).bytes,
    "timeuuid": lambda shown: UUID(shown).bytes,
    "timestamp": timestamp,
    "date": days,
    "time": time,
    "decimal": decimal,
    "inet": lambda shown: ipaddress.ip_address(shown).packed,
    "duration": duration,
    "empty": lambda _shown: b"",
}
