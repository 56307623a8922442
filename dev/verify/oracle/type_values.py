"""Random CQL types and serialized values of them, drawn from few enough that equal and nearly equal ones meet."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable
from typing import TypeAlias

from cassandra_storage.formats.primitives.vint import write_unsigned_vint, write_vint
from cassandra_storage.formats.types.cql_types import UserTypeDefinition
from cassandra_storage.formats.types.marshal import (
    LEXICAL_UUID_TYPE,
    CqlType,
    CustomType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
    fixed_length,
)
from dev.verify.model.values import varint_bytes

KEYSPACE = "ks"
USER_TYPES = {
    name: UserTypeDefinition(KEYSPACE, name, tuple(fields), tuple(fields.values()))
    for name, fields in {
        "point": {"x": "int", "y": "text"},
        "Odd name": {"a": "frozen<point>", "select": "frozen<map<text, decimal>>", 'q"t': "list<double>"},
    }.items()
}
POINT = UserType(KEYSPACE, "point", ("x", "y"), (NativeType("int"), NativeType("text")), is_multi_cell=False)
ODD = UserType(
    KEYSPACE,
    "Odd name",
    ("a", "select", 'q"t'),
    (
        POINT,
        MapType(NativeType("text"), NativeType("decimal"), is_multi_cell=False),
        ListType(NativeType("double"), is_multi_cell=False),
    ),
    is_multi_cell=False,
)

_Draw: TypeAlias = Callable[[random.Random], bytes]
_NOT_EMPTY = ("tinyint", "smallint", "date", "time", "duration")  # AbstractType.allowsEmpty is false


def _number(rng: random.Random, bits: int) -> int:
    """A signed number of any magnitude up to `bits`: near a power of two, small, or anything."""
    limit = 1 << (bits - 1)
    number = rng.choice((rng.randint(-3, 3), (1 << rng.randrange(bits)) + rng.randint(-1, 1), rng.getrandbits(bits)))
    number = -number if rng.random() < 0.5 else number
    return (number + limit) % (2 * limit) - limit


def _signed(size: int) -> _Draw:
    return lambda rng: _number(rng, size * 8).to_bytes(size, "big", signed=True)


def _bytes(alphabet: bytes) -> _Draw:
    def draw(rng: random.Random) -> bytes:
        length = rng.randint(0, 4) if rng.random() < 0.95 else rng.randint(0, 300)
        return bytes(rng.choices(alphabet, k=length))

    return draw


def _text(rng: random.Random) -> bytes:
    return "".join(rng.choices("\0\1ab\x7f\u00e9\u0800\ud7ff\U0001f600", k=rng.randint(0, 4))).encode()


def _floating(layout: str) -> _Draw:
    size = struct.calcsize(layout)
    specials: list[bytes] = [
        struct.pack(layout, x) for x in (0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf"), float("nan"))
    ]

    def draw(rng: random.Random) -> bytes:
        value: bytes = rng.choice(specials) if rng.random() < 0.5 else rng.randbytes(size)
        is_nan: bool = math.isnan(struct.unpack(layout, value)[0])
        return specials[-1] if is_nan else value

    return draw


def _odd_nan(layout: str) -> bytes:
    """A NaN of a sign and bits that Java never writes."""
    return b"\xff" + struct.pack(layout, float("nan"))[1:-1] + b"\x01"


def _varint(rng: random.Random) -> bytes:
    return varint_bytes(_number(rng, rng.choice((8, 64, 72, 600, 2000))))


def _decimal(rng: random.Random) -> bytes:
    unscaled: int = _number(rng, rng.choice((8, 16, 64, 300))) * 10 ** rng.randint(0, 4)
    scale = rng.choice((rng.randint(-4, 6), rng.randint(-300, 300), _number(rng, 32)))
    return scale.to_bytes(4, "big", signed=True) + varint_bytes(unscaled)


def _uuid(rng: random.Random) -> bytes:
    value = bytearray(rng.choices(b"\x00\x01\x7f\x80\xff", k=16) if rng.random() < 0.7 else rng.randbytes(16))
    value[6] = value[6] & 0x0F | rng.choice((0x10, 0x10, 0x40, 0x40, 0x00, 0x30, 0x70, 0xF0))
    return bytes(value)


def _timeuuid(rng: random.Random) -> bytes:
    value = bytearray(_uuid(rng))
    value[6] = value[6] & 0x0F | 0x10
    return bytes(value)


def _duration(rng: random.Random) -> bytes:
    sign = rng.choice((1, -1))
    parts = (rng.getrandbits(rng.choice((1, 31))), rng.getrandbits(rng.choice((1, 31))), rng.getrandbits(63))
    return b"".join(write_vint(sign * part) for part in parts)


_NATIVE: dict[str, _Draw] = {
    "ascii": _bytes(b"\x00\x01ab\x7f"),
    "bigint": _signed(8),
    "blob": _bytes(b"\x00\x00\x01\xfe\xff"),
    "boolean": lambda rng: bytes([rng.choice((0, 1, 2, 255))]),
    "date": _signed(4),
    "decimal": _decimal,
    "double": _floating(">d"),
    "duration": _duration,
    "float": _floating(">f"),
    "inet": lambda rng: bytes(rng.choices(b"\x00\x01\xff", k=rng.choice((4, 16)))),
    "int": _signed(4),
    "smallint": _signed(2),
    "text": _text,
    "time": lambda rng: rng.randrange(86_400 * 10**9).to_bytes(8, "big"),
    "timestamp": _signed(8),
    "timeuuid": _timeuuid,
    "tinyint": _signed(1),
    "uuid": _uuid,
    "varint": _varint,
}
NATIVES = tuple(_NATIVE)
COMPARABLE = tuple(name for name in NATIVES if name != "duration")


class TypeValues:
    """Draws from one random generator; `is_plain` leaves out what Cassandra orders otherwise than it writes: empty
    values, and numbers in other forms than Java's.
    """

    def __init__(self, rng: random.Random, *, is_plain: bool, has_vectors: bool = True) -> None:
        self.rng = rng
        self.is_plain = is_plain
        self.has_vectors = has_vectors

    def type(self, natives: tuple[str, ...] = NATIVES, depth: int = 2) -> CqlType:
        """A frozen type."""
        if depth == 0 or self.rng.random() < 0.5:
            return NativeType(self.rng.choice(natives))
        inner = [self.type(natives, depth - 1) for _ in range(self.rng.randint(1, 3))]
        keys = self._key_type(natives, depth - 1)
        return self.rng.choice(
            (
                ListType(inner[0], is_multi_cell=False),
                SetType(keys, is_multi_cell=False),
                MapType(keys, inner[0], is_multi_cell=False),
                TupleType(tuple(inner)),
                VectorType(inner[0], self.rng.randint(1, 3))
                if self.has_vectors
                else ListType(inner[0], is_multi_cell=False),
                POINT,
                ODD,
                CustomType(LEXICAL_UUID_TYPE),
            )
        )

    def _key_type(self, natives: tuple[str, ...], depth: int) -> CqlType:
        """A type for a set's elements or a map's keys, which may not be durations themselves."""
        return self.type(tuple(name for name in natives if name != "duration"), depth)

    def multi_cell_type(self, natives: tuple[str, ...] = NATIVES) -> CqlType:
        keys, values = self._key_type(natives, 1), self.type(natives, 1)
        return self.rng.choice(
            (
                ListType(values, is_multi_cell=True),
                SetType(keys, is_multi_cell=True),
                MapType(keys, values, is_multi_cell=True),
                UserType(KEYSPACE, "point", POINT.field_names, POINT.field_types, is_multi_cell=True),
            )
        )

    def value(self, type_: CqlType) -> bytes:  # noqa: PLR0911  one for each kind of type
        match type_:
            case NativeType(name):
                return self._native(name)
            case CustomType():
                return self._native("uuid")
            case ListType(of, _) | SetType(of, _):
                return self._collection([self.value(of) for _ in range(self.rng.randint(0, 3))], 1)
            case MapType(keys, values, _):
                flat = [self.value(of) for _ in range(self.rng.randint(0, 2)) for of in (keys, values)]
                return self._collection(flat, 2)
            case TupleType(types):
                return self._tuple(types)
            case UserType():
                return self._tuple(type_.field_types)
            case VectorType(of, dimension):
                return self._vector(of, dimension)

    def _native(self, name: str) -> bytes:
        if not self.is_plain and self.rng.random() < 0.2:
            if name in ("float", "double"):
                return _odd_nan(">f" if name == "float" else ">d")
            if name == "varint":
                padded = _varint(self.rng)
                return (b"\xff" if padded[0] & 0x80 else b"\x00") * self.rng.randint(1, 9) + padded
            if name not in _NOT_EMPTY:
                return b""
        return _NATIVE[name](self.rng)

    @staticmethod
    def _collection(values: list[bytes], per_element: int) -> bytes:
        count = len(values) // per_element
        return count.to_bytes(4, "big") + b"".join(len(value).to_bytes(4, "big") + value for value in values)

    def _tuple(self, types: tuple[CqlType, ...]) -> bytes:
        """Return a tuple, sometimes without its last fields, as if they were added later."""
        given = self.rng.randint(1, len(types)) if self.rng.random() < 0.3 else len(types)
        parts = []
        for type_ in types[:given]:
            value = None if self.rng.random() < 0.2 else self.value(type_)
            parts.append(b"\xff\xff\xff\xff" if value is None else len(value).to_bytes(4, "big") + value)
        return b"".join(parts)

    def _vector(self, of: CqlType, dimension: int) -> bytes:
        length = fixed_length(of)
        parts = []
        for _ in range(dimension):
            value = self.value(of)
            while length is not None and len(value) != length:
                value = self.value(of)
            parts.append(value if length is not None else write_unsigned_vint(len(value)) + value)
        return b"".join(parts)
