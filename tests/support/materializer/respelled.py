"""Other bytes that SELECT shows as the same value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.primitives.vint import write_unsigned_vint
from cassandra_storage.formats.types.marshal import (
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
    elements,
    fields,
    fixed_length,
    pairs,
    vector_elements,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from cassandra_storage.formats.types.marshal import CqlType

_TEXTS = (NativeType("text"), NativeType("ascii"))


def respelled(rng: random.Random, type_: CqlType, value: bytes) -> bytes:  # noqa: PLR0911 - one for each kind of type
    """Another spelling of a value, if it has one; maybe the same."""
    if not value:
        return value
    match type_:
        case NativeType(name):
            return _native(rng, name, value)
        case ListType(of, _) | SetType(of, _):
            return _collection([respelled(rng, of, item) for item in elements(value)], 1)
        case MapType(keys, values, _):
            found = [(respelled(rng, keys, key), respelled(rng, values, item)) for key, item in pairs(value)]
            if keys in _TEXTS:
                found = list(dict(found).items())
                rng.shuffle(found)
            return _collection([part for pair in found for part in pair], 2)
        case TupleType() | UserType():
            return _tuple(rng, type_.types if isinstance(type_, TupleType) else type_.field_types, value)
        case VectorType(of, _):
            items = [respelled(rng, of, item) for item in vector_elements(type_, value)]
            has_sizes = fixed_length(of) is None
            return b"".join((write_unsigned_vint(len(item)) if has_sizes else b"") + item for item in items)
    return value


def _native(rng: random.Random, name: str, value: bytes) -> bytes:
    match name:
        case "boolean" if value != b"\x00":
            return bytes([rng.randint(1, 255)])
        case "varint":
            return _padded(rng, value)
        case "decimal":
            return value[:4] + _padded(rng, value[4:])
    return value


def _padded(rng: random.Random, number: bytes) -> bytes:
    return (b"\xff" if number[0] & 0x80 else b"\x00") * rng.randint(0, 2) + number


def _tuple(rng: random.Random, types: Sequence[CqlType], value: bytes) -> bytes:
    """With or without its last nulls, which are of any negative size."""
    split = fields(value, len(types))
    while len(split) > 1 and split[-1] is None and rng.random() < 0.5:
        split.pop()
    parts = [
        rng.choice((b"\xff\xff\xff\xff", b"\xff\xff\xff\xfe")) if item is None else _sized(respelled(rng, of, item))
        for of, item in zip(types, split, strict=False)
    ]
    return b"".join(parts)


def _collection(parts: list[bytes], per_element: int) -> bytes:
    return (len(parts) // per_element).to_bytes(4, "big") + b"".join(map(_sized, parts))


def _sized(value: bytes) -> bytes:
    return len(value).to_bytes(4, "big") + value
