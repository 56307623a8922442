"""Values of Java as Python has them, and the functions of the tests that make values.

A Java set is a list here, and a map an OrderedMap: their elements need not be hashable.
"""

from __future__ import annotations

import ipaddress
import re
import struct
import uuid
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from cassandra.query import UNSET_VALUE
from cassandra.util import OrderedMap

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_DIRECTIVE = re.compile(r"%(?:(\d+)\$)?(?:0?\d*)([sdnfS%])")


class Long(int):
    """A number with an L at its end."""


class NoValueError(Exception):
    """The value cannot be known without running Java; the text says of what."""


class Builder:
    """A StringBuilder."""

    def __init__(self, text: str = "") -> None:
        self.text = text


def number(text: str) -> int | float:
    """The value of a number as Java writes it."""
    digits = text.replace("_", "")
    if digits[:2] in {"0x", "0X"}:
        return Long(digits.rstrip("lL"), 16) if digits[-1] in "lL" else int(digits, 16)
    if digits[-1] in "lL":
        return Long(digits[:-1])
    if digits[-1] in "fFdD" or any(mark in digits for mark in ".eE"):
        return float(digits.rstrip("fFdD"))
    return int(digits)


def java_text(value: object) -> str:
    """The text that Java joins to a string."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case Builder():
            return value.text
        case int() | float() | str() | uuid.UUID() | Decimal():
            return str(value)
        case list():
            return "[" + ", ".join(map(java_text, value)) + "]"
    raise NoValueError(f"the text of a {type(value).__name__}")


def formatted(template: str, *values: object) -> str:
    """String.format, as far as the tests use it."""
    left = iter(values)

    def one(match: re.Match[str]) -> str:
        if match[2] in "%n":
            return "%" if match[2] == "%" else "\n"
        try:
            value = values[int(match[1]) - 1] if match[1] else next(left)
        except (StopIteration, IndexError):
            raise NoValueError("String.format with too few values") from None
        return java_text(value)

    return _DIRECTIVE.sub(one, template)


def to_bytes(value: object) -> bytes:
    """ByteBufferUtil.bytes."""
    match value:
        case bytes():
            return value
        case str():
            return value.encode()
        case Long():
            return struct.pack(">q", value)
        case bool():
            raise NoValueError("bytes of a boolean")
        case int():
            return struct.pack(">i", value)
        case float():
            return struct.pack(">d", value)
        case uuid.UUID():
            return value.bytes
    raise NoValueError(f"bytes of a {type(value).__name__}")


def unique(*items: object) -> list[object]:
    return [item for at, item in enumerate(items) if item not in items[:at]]


def pairs(*items: object) -> OrderedMap:
    return OrderedMap(list(zip(items[::2], items[1::2], strict=True)))


def flat(*items: object) -> list[object]:
    """The items; or those of the one array that is given."""
    return list(items[0]) if len(items) == 1 and isinstance(items[0], list) else list(items)


def decimal(text: object) -> Decimal:
    try:
        return Decimal(str(text))
    except InvalidOperation:
        raise NoValueError("a BigDecimal") from None


def time_uuid() -> uuid.UUID:
    return uuid.uuid1()


# Of the class itself (CQLTester's), by name.
TESTER: Mapping[str, Callable[..., Any]] = {
    "list": lambda *items: list(items),
    "set": unique,
    "map": pairs,
    "tuple": lambda *items: tuple(items),
    "userType": lambda *items: tuple(items[1::2]),
    "vector": flat,
    "row": lambda *items: list(items),
    "unset": lambda: UNSET_VALUE,
    "bytes": to_bytes,
    "sleep": lambda *_: None,
    "format": formatted,
    "linkedHashMap": pairs,
    "linkedHashSet": unique,
}
# Of other classes, by class and name.
STATIC: Mapping[tuple[str, str], Callable[..., Any]] = {
    ("String", "format"): formatted,
    ("String", "valueOf"): java_text,
    ("String", "join"): lambda separator, *items: separator.join(map(java_text, flat(*items))),
    ("Integer", "valueOf"): int,
    ("Integer", "toString"): str,
    ("Long", "valueOf"): Long,
    ("Double", "valueOf"): float,
    ("Float", "valueOf"): float,
    ("Arrays", "asList"): flat,
    ("Lists", "newArrayList"): flat,
    ("List", "of"): flat,
    ("ImmutableList", "of"): flat,
    ("ImmutableSet", "of"): unique,
    ("Set", "of"): unique,
    ("Sets", "newHashSet"): unique,
    ("ImmutableMap", "of"): pairs,
    ("Map", "of"): pairs,
    ("Collections", "emptyList"): list,
    ("Collections", "emptySet"): list,
    ("Collections", "emptyMap"): pairs,
    ("Collections", "singletonList"): flat,
    ("Collections", "singleton"): unique,
    ("Collections", "singletonMap"): pairs,
    ("ByteBufferUtil", "bytes"): to_bytes,
    ("ByteBuffer", "wrap"): to_bytes,
    ("UUID", "fromString"): uuid.UUID,
    ("UUID", "randomUUID"): uuid.uuid4,
    ("UUIDs", "timeBased"): time_uuid,
    ("UUIDGen", "getTimeUUID"): time_uuid,
    ("TimeUUID", "fromString"): uuid.UUID,
    ("BigInteger", "valueOf"): int,
    ("BigDecimal", "valueOf"): decimal,
    ("InetAddress", "getByName"): lambda text: str(ipaddress.ip_address(text)),
    ("InetAddress", "getLoopbackAddress"): lambda: "127.0.0.1",
    ("Math", "max"): max,
    ("Math", "min"): min,
    ("StringUtils", "repeat"): lambda text, count: text * count,
}
CONSTANTS: Mapping[tuple[str, str], object] = {
    ("Integer", "MAX_VALUE"): 2**31 - 1,
    ("Integer", "MIN_VALUE"): -(2**31),
    ("Long", "MAX_VALUE"): Long(2**63 - 1),
    ("Long", "MIN_VALUE"): Long(-(2**63)),
    ("Short", "MAX_VALUE"): 2**15 - 1,
    ("Short", "MIN_VALUE"): -(2**15),
    ("Byte", "MAX_VALUE"): 127,
    ("Byte", "MIN_VALUE"): -128,
    ("Double", "NaN"): float("nan"),
    ("Double", "POSITIVE_INFINITY"): float("inf"),
    ("Double", "NEGATIVE_INFINITY"): float("-inf"),
    ("Float", "NaN"): float("nan"),
    ("Attributes", "MAX_TTL"): 630_720_000,
    ("Boolean", "TRUE"): True,
    ("Boolean", "FALSE"): False,
    ("ByteBufferUtil", "EMPTY_BYTE_BUFFER"): b"",
    ("BigInteger", "ZERO"): 0,
    ("BigInteger", "ONE"): 1,
    ("BigDecimal", "ZERO"): Decimal(0),
    ("BigDecimal", "ONE"): Decimal(1),
}
MADE: Mapping[str, Callable[..., Any]] = {
    "StringBuilder": lambda *text: Builder(*(part for part in text if isinstance(part, str))),
    "BigDecimal": decimal,
    "BigInteger": int,
    "String": lambda text="": java_text(text),
    "ArrayList": lambda *_: [],
    "[]": lambda *sizes: [None] * sizes[0],
}
