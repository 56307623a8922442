"""Serialized CQL values as lossless JSON: docs/guides/inspect-commit-logs.md has the form of each type.

A value that is not of its type, and a number with too many digits, is `{"$raw": "0x…"}`.
"""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.types import marshal
from cassandra_storage.formats.types.marshal import (
    CqlType,
    CustomType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cassandra_storage.formats.types.serializers import BigDecimal, Duration

Json: TypeAlias = Any

_RAW = "$raw"
_LONGEST_INTEGER = 1024  # bytes; the time for its decimal digits grows with the square
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CANONICAL_NANS = (bytes.fromhex("7fc00000"), bytes.fromhex("7ff8000000000000"))
_DURATION_UNITS = (
    (3_600_000_000_000, "h"),
    (60_000_000_000, "m"),
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
    (1_000, "us"),
    (1, "ns"),
)


def value_json(type_: CqlType, value: bytes) -> Json:
    """One serialized value of the type as a value for json.dumps."""
    try:
        return _json(type_, value)
    except FormatError:
        return raw(value)


def raw(value: bytes) -> Json:
    return {_RAW: hexadecimal(value)}


def hexadecimal(value: bytes) -> str:
    """The bytes as CQL writes a blob."""
    return "0x" + value.hex()


def _json(type_: CqlType, value: bytes) -> Json:  # noqa: PLR0911  one for each kind of type
    if not value and not isinstance(type_, ListType | SetType | MapType | VectorType):
        return "0x" if type_ in (NativeType("blob"), NativeType("empty")) or isinstance(type_, CustomType) else ""
    match type_:
        case NativeType(name):
            return _native(name, value)
        case ListType(of, _) | SetType(of, _):
            return [_json(of, element) for element in marshal.elements(value)]
        case MapType():
            return _map(type_, marshal.pairs(value))
        case TupleType(types):
            return [_field(of, field) for of, field in zip(types, _present(value, len(types)), strict=False)]
        case UserType():
            present = _present(value, len(type_.field_types))
            named = zip(type_.field_names, type_.field_types, present, strict=False)
            return {name: _field(of, field) for name, of, field in named}
        case VectorType():
            return [_json(type_.elements, element) for element in marshal.vector_elements(type_, value)]
        case CustomType():
            return hexadecimal(value)


def _map(type_: MapType, pairs: Sequence[tuple[bytes, bytes]]) -> Json:
    """An object if the keys are text, all different and none that of raw values; otherwise pairs in the order given."""
    entries = [(_json(type_.keys, key), _json(type_.values, value)) for key, value in pairs]
    if type_.keys in (NativeType("text"), NativeType("ascii")):
        by_key = dict(entries)
        if len(by_key) == len(entries) and _RAW not in by_key:
            return by_key
    return [list(entry) for entry in entries]


def _present(value: bytes, count: int) -> list[bytes | None]:
    """The fields that the value has: those at the end may be missing, which is not the same as null."""
    split = marshal.fields(value, count)
    position = 0
    for index, field in enumerate(split):
        if position == len(value):
            return split[:index]
        position += 4 + len(field or b"")
    return split


def _field(type_: CqlType, value: bytes | None) -> Json:
    return None if value is None else _json(type_, value)


def _native(name: str, value: bytes) -> Json:
    decoded = marshal.decode(NativeType(name), value)
    if len(value) > _LONGEST_INTEGER and name in ("varint", "decimal"):
        return raw(value)
    convert = _CONVERT.get(name)
    if name in ("float", "double"):
        return _floating(value)
    return decoded if convert is None else convert(decoded)


def _floating(value: bytes) -> Json:
    """A float's number is that of the double nearest to it, which is itself; JSON has no NaN and no infinity."""
    (number,) = struct.unpack(">f" if len(value) == 4 else ">d", value)
    if math.isnan(number):
        return "NaN" if value in _CANONICAL_NANS else raw(value)
    return number if math.isfinite(number) else "Infinity" if number > 0 else "-Infinity"


def _timestamp(milliseconds: int) -> Json:
    """ISO 8601 in UTC; the number where a year is not of four digits."""
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return milliseconds
    return moment.strftime("%Y-%m-%d %H:%M:%S.").rjust(20, "0") + f"{milliseconds % 1000:03d}Z"


def _date(days: int) -> Json:
    try:
        return (date(1970, 1, 1) + timedelta(days=days)).isoformat()
    except OverflowError:
        return days


def _time(nanoseconds: int) -> Json:
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    if not 0 <= seconds < 86_400:
        return nanoseconds
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:09d}"


def _decimal(value: BigDecimal) -> str:
    """java.math.BigDecimal.toString: each text stands for one unscaled value and scale."""
    digits = tuple(int(digit) for digit in str(abs(value.unscaled)))
    return str(Decimal((int(value.unscaled < 0), digits, -value.scale)))


def _duration(value: Duration) -> str:
    """CQL's own form; nothing is carried from one unit of Cassandra's three to another."""
    rest = abs(value.nanoseconds)
    parts = [(abs(value.months) // 12, "y"), (abs(value.months) % 12, "mo"), (abs(value.days), "d")]
    for size, unit in _DURATION_UNITS:
        count, rest = divmod(rest, size)
        parts.append((count, unit))
    text = "".join(f"{count}{unit}" for count, unit in parts if count) or "0ns"
    return "-" + text if min(value) < 0 else text


_CONVERT: dict[str, Callable[[Any], Json]] = {
    "blob": hexadecimal,
    "date": _date,
    "decimal": _decimal,
    "duration": _duration,
    "inet": str,
    "time": _time,
    "timestamp": _timestamp,
    "timeuuid": str,
    "uuid": str,
}
