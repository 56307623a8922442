"""Values of native CQL types, each as a literal and serialized, so that a statement can write it either way.

The pools are small, so that writes meet: equal values, values that only the comparator holds equal, extremes.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import math
import struct
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from cassandra.marshal import vints_pack
from cassandra.query import UNSET_VALUE

EPOCH = dt.date(1970, 1, 1)
DATE_ZERO = 1 << 31  # serialized dates count from -5877641-06-23
SECOND_NS = 10**9
UUID_EPOCH = 0x01B21DD213814000  # 1970 in a timeuuid's units of 100 ns


class Value(NamedTuple):
    """One value."""

    # The CQL literal.
    text: str
    # The serialized value; None for null, UNSET_VALUE for unset.
    data: object

    @property
    def bytes(self) -> bytes:
        """The bytes of a value that is not null or unset."""
        assert isinstance(self.data, bytes)
        return self.data


NULL = Value("null", None)
UNSET = Value("UNSET", UNSET_VALUE)


def integer(number: int, size: int = 4) -> Value:
    return Value(str(number), number.to_bytes(size, "big", signed=True))


def timestamp(microseconds: int) -> Value:
    """Return the value for USING TIMESTAMP."""
    return integer(microseconds, 8)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def varint_bytes(number: int) -> bytes:
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


def _decimal_bytes(text: str) -> bytes:
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    return struct.pack(">i", -exponent) + varint_bytes(unscaled)


def _float(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return repr(number) if math.isfinite(number) else "Infinity" if number > 0 else "-Infinity"


def _time(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, SECOND_NS)
    return f"'{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:09}'"


def _duration(text: str) -> bytes:
    months, days, nanoseconds = DURATIONS[text]
    packed: bytes = vints_pack([months, days, nanoseconds])
    return packed


DURATIONS: Mapping[str, tuple[int, int, int]] = {
    "1y2mo3d4h5m6s7ms8us9ns": (14, 3, 14_706_007_008_009),
    "-1mo": (-1, 0, 0),
    "89h4m48s": (0, 0, 320_688 * SECOND_NS),
    "0d": (0, 0, 0),
}


class Native(NamedTuple):
    """The values of a native type."""

    # Returns the CQL literal of a Python value.
    literal: Callable[[Any], str]
    # Serializes a Python value.
    serialize: Callable[[Any], bytes]
    # The Python values to choose from.
    pool: tuple[Any, ...]
    # Returns the Python value of a number: another one for each, as far as the type has so many.
    number: Callable[[int], Any]
    special: tuple[Any, ...] = ()  # the values of the first numbers, where they differ


def _packed(code: str, literal: Callable[[Any], str] = str) -> tuple[Callable[[Any], str], Callable[[Any], bytes]]:
    return literal, struct.Struct(f">{code}").pack


def _text(encoding: str) -> tuple[Callable[[Any], str], Callable[[Any], bytes]]:
    return quoted, lambda text: text.encode(encoding)


def _uuid(version: int) -> Callable[[int], uuid.UUID]:
    if version == 1:
        return lambda n: uuid.UUID(fields=_time_fields(UUID_EPOCH + n * 10_000_000))
    return lambda n: uuid.UUID(int=n << 80 | n, version=4)


def _time_fields(ticks: int) -> tuple[int, int, int, int, int, int]:
    return ticks & 0xFFFFFFFF, ticks >> 32 & 0xFFFF, ticks >> 48 & 0x0FFF | 0x1000, 0x80, 1, 0x0000_5E00_5301


_UUIDS = (str, lambda value: value.bytes)
_LARGE = (170141183460469231731687303715884105728, -170141183460469231731687303715884105729)

NATIVES: Mapping[str, Native] = {
    "ascii": Native(*_text("ascii"), ("", "a", "~"), lambda n: f"a{n}", ("?", "'")),
    "text": Native(*_text("utf-8"), ("x", "y", "zz", "émile", "", "it's"), lambda n: f"t{n}", ("é", " ", "?{}$k")),
    "boolean": Native(*_packed("?", lambda value: str(value).lower()), (True, False), lambda n: bool(n % 2)),
    "tinyint": Native(*_packed("b"), (-128, 0, 127), lambda n: n % 100),
    "smallint": Native(*_packed("h"), (-32768, 0, 32767), lambda n: n % 10_000),
    "int": Native(*_packed("i"), (0, 1, 2, 3, -1, 2147483647), lambda n: n),
    "bigint": Native(*_packed("q"), (-(2**63), 0, 7, 2**63 - 1), lambda n: n, (2**63 - 1, -(2**63))),
    "varint": Native(str, varint_bytes, (0, -1, 255, *_LARGE), lambda n: n, _LARGE),
    "decimal": Native(
        str,
        _decimal_bytes,
        ("1", "1.0", "1.00", "-0.0", "0", "2.5", "1e-40", "12345678901234567890.0123456789"),
        lambda n: f"{n}.25",
        ("1", "1.0", "1.00", "0"),
    ),
    "float": Native(
        *_packed("f", _float),
        (0.0, -0.0, 1.5, math.nan, math.inf, 1e-45),
        lambda n: n + 0.5,
        (math.nan, -0.0, math.inf, 0.0),
    ),
    "double": Native(
        *_packed("d", _float),
        (0.0, -0.0, 1.5, math.nan, -math.inf, 1e300),
        lambda n: n + 0.5,
        (math.nan, -0.0, -math.inf, 0.0),
    ),
    "blob": Native(
        lambda value: "0x" + value.hex(),
        bytes,
        (b"", b"\0", b"\0\1", b"\xff", b"\xab" * 40),
        lambda n: n.to_bytes(4, "big"),
        (b"\0", b"\0\0"),
    ),
    "inet": Native(
        lambda value: f"'{value}'",
        lambda value: ipaddress.ip_address(value).packed,
        ("127.0.0.1", "::1", "2001:db8::1"),
        lambda n: str(ipaddress.IPv4Address(0x0A000000 + n)),
        ("::1", "2001:db8::1"),
    ),
    "date": Native(
        lambda value: f"'{value}'",
        lambda value: struct.pack(">I", (dt.date.fromisoformat(value) - EPOCH).days + DATE_ZERO),
        ("2020-02-29", "1969-12-31", "0001-01-01"),
        lambda n: str(dt.date.fromordinal(1 + n)),
    ),
    "time": Native(
        _time,
        struct.Struct(">q").pack,
        (0, 86_399_999_999_999),
        lambda n: 1_000 * n + 1,
        (86_399_999_999_999,),
    ),
    "timestamp": Native(*_packed("q"), (1_582_977_600_123, -1, 0), lambda n: 1_000 * n, (-1, -62_135_596_800_000)),
    "uuid": Native(
        *_UUIDS,
        (uuid.UUID("6ba7b810-9dad-41d1-80b4-00c04fd430c8"), uuid.UUID(int=0)),
        _uuid(4),
        (uuid.UUID(int=0), uuid.UUID(int=2**128 - 1)),
    ),
    "timeuuid": Native(
        *_UUIDS,
        (
            uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
            uuid.UUID("6ba7b810-9dad-11d1-00b4-00c04fd430c8"),
            uuid.UUID("50554d6e-29bb-11e5-b345-feff819cdc9f"),
        ),
        _uuid(1),
    ),
    "duration": Native(str, _duration, tuple(DURATIONS), lambda n: list(DURATIONS)[n % len(DURATIONS)]),
}
# Their first marker's number is above a million; the others have fewer values or cannot be keys.
NUMBERED = tuple(name for name in NATIVES if name not in {"boolean", "tinyint", "smallint", "duration", "date"})
EMPTY: Mapping[str, Value] = {
    name: Value(f"blobAs{name.capitalize()}(0x)", b"")
    for name in ("int", "bigint", "double", "boolean", "uuid", "timestamp", "decimal", "varint", "inet")
}


def native_value(name: str, value: Any) -> Value:  # noqa: ANN401 - of the type's pool
    of = NATIVES[name]
    return Value(of.literal(value), of.serialize(value))


def numbered_value(name: str, number: int) -> Value:
    """Each number has a value of its own, except for boolean, tinyint, smallint and duration."""
    of = NATIVES[name]
    return native_value(name, of.special[number] if number < len(of.special) else of.number(number))
