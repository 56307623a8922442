"""Serialized CQL values with what an Avro reader without logical types must read."""

from __future__ import annotations

import ipaddress
import struct
from typing import TYPE_CHECKING, Any, TypeAlias

from hypothesis import strategies as st

from cassandra_storage.formats.primitives.vint import write_unsigned_vint, write_vint
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
    fixed_length,
)
from cdc_common.messages.avro.names import avro_names

if TYPE_CHECKING:
    from collections.abc import Callable

# The serialized value (of a multi-cell type its cells' paths and values), and what a reader reads.
Value: TypeAlias = tuple[Any, Any]
Values: TypeAlias = st.SearchStrategy[Value]


def _integers(size: int) -> Values:
    bound = 2 ** (8 * size - 1)
    return st.integers(-bound, bound - 1).map(lambda number: (number.to_bytes(size, "big", signed=True), number))


def _date(days: int) -> Value:
    return (days + 2**31).to_bytes(4, "big"), days


def _varint(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


def _decimal(unscaled: int, scale: int) -> Value:
    return struct.pack(">i", scale) + _varint(unscaled), {"value": _varint(unscaled), "scale": scale}


def _duration(months: int, days: int, nanos: int, sign: int) -> Value:
    parts = {"months": sign * months, "days": sign * days, "nanos": sign * nanos}
    return b"".join(write_vint(part) for part in parts.values()), parts


def _inet(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> Value:
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return address.packed, f"::ffff:{address.ipv4_mapped}"
    return address.packed, str(address)


_BYTES = st.binary().map(lambda value: (value, value))
_UUIDS = st.uuids().map(lambda value: (value.bytes, str(value)))
_ADDRESSES = st.ip_addresses() | st.ip_addresses(v=4).map(lambda address: ipaddress.IPv6Address(f"::ffff:{address}"))
NATIVE: dict[str, Values] = {
    "ascii": st.text(st.characters(max_codepoint=127)).map(lambda text: (text.encode(), text)),
    "text": st.text().map(lambda text: (text.encode(), text)),
    "tinyint": _integers(1),
    "smallint": _integers(2),
    "int": _integers(4),
    "bigint": _integers(8),
    "counter": _integers(8),
    "boolean": st.booleans().map(lambda value: (bytes((value,)), value)),
    "float": st.floats(width=32, allow_nan=False).map(lambda value: (struct.pack(">f", value), value)),
    "double": st.floats(allow_nan=False).map(lambda value: (struct.pack(">d", value), value)),
    "blob": _BYTES,
    "varint": st.integers().map(lambda value: (_varint(value), _varint(value))),
    "uuid": _UUIDS,
    "timeuuid": _UUIDS,
    "timestamp": _integers(8),
    "date": st.integers(-(2**31), 2**31 - 1).map(_date),
    "time": _integers(8),
    "decimal": st.builds(_decimal, st.integers(), st.integers(-(2**31), 2**31 - 1)),
    "inet": _ADDRESSES.map(_inet),
    "duration": st.builds(
        _duration,
        st.integers(0, 2**31 - 1),
        st.integers(0, 2**31 - 1),
        st.integers(0, 2**63 - 1),
        st.sampled_from([1, -1]),
    ),
    "empty": st.just((b"", b"")),
}


def values(cql_type: CqlType) -> Values:  # noqa: PLR0911  one for each kind of type
    """Values of the type that Avro can say: none is empty, nor holds an empty one, where Avro has no empty value."""
    match cql_type:
        case NativeType(name):
            return NATIVE[name]
        case CustomType():
            return _BYTES
        case VectorType(of, dimension):
            return st.lists(values(of), min_size=dimension, max_size=dimension).map(lambda items: _vector(of, items))
        case ListType(of, True):
            cells = st.lists(st.tuples(st.uuids(version=1), values(of)), min_size=1, max_size=3)
            return cells.map(lambda items: (tuple((p.bytes, v) for p, (v, _) in items), [e for _, (_, e) in items]))
        case SetType(of, True):
            items = st.lists(values(of), min_size=1, max_size=3)
            return items.map(lambda items: (tuple((path, b"") for path, _ in items), [e for _, e in items]))
        case ListType(of) | SetType(of):
            return st.lists(values(of), max_size=3).map(_frozen_list)
        case MapType():
            return _maps(cql_type)
        case TupleType(types):
            return _records([f"f{index}" for index in range(len(types))], types, _frozen_record)
        case UserType(_, _, names, types, is_multi_cell):
            mapped = avro_names(names)
            make = _record_cells if is_multi_cell else _frozen_record
            return _records([mapped[name] for name in names], types, make)


def _sized(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def _frozen_list(items: list[Value]) -> Value:
    serialized = struct.pack(">i", len(items)) + b"".join(_sized(value) for value, _ in items)
    return serialized, [expected for _, expected in items]


def _vector(of: CqlType, items: list[Value]) -> Value:
    is_fixed = fixed_length(of) is not None
    parts = [value if is_fixed else write_unsigned_vint(len(value)) + value for value, _ in items]
    return b"".join(parts), [expected for _, expected in items]


def _maps(of: MapType) -> Values:
    is_avro_map = of.keys in (NativeType("text"), NativeType("ascii"))
    entries = st.lists(
        st.tuples(values(of.keys), values(of.values)),
        min_size=int(of.is_multi_cell),
        max_size=3,
        unique_by=lambda entry: entry[0][0],
    )

    def make(items: list[tuple[Value, Value]]) -> Value:
        pairs = tuple((key, value) for (key, _), (value, _) in items)
        flat = b"".join(_sized(key) + _sized(value) for key, value in pairs)
        expected: Any = [{"key": key, "value": value} for (_, key), (_, value) in items]
        if is_avro_map:
            expected = {key: value for (_, key), (_, value) in items}
        return pairs if of.is_multi_cell else struct.pack(">i", len(items)) + flat, expected

    return entries.map(make)


def _records(
    names: list[str], types: tuple[CqlType, ...], make: Callable[[list[str], tuple[Value | None, ...]], Value]
) -> Values:
    """Return records with at least one field that is not null. Empty and null multi-cell ones have only null fields."""
    fields = st.tuples(*(st.none() | values(of) for of in types))
    return fields.filter(any).map(lambda items: make(names, items))


def _frozen_record(names: list[str], items: tuple[Value | None, ...]) -> Value:
    serialized = b"".join(struct.pack(">i", -1) if item is None else _sized(item[0]) for item in items)
    return serialized, _expected(names, items)


def _record_cells(names: list[str], items: tuple[Value | None, ...]) -> Value:
    cells = tuple((struct.pack(">H", index), item[0]) for index, item in enumerate(items) if item is not None)
    return cells, _expected(names, items)


def _expected(names: list[str], items: tuple[Value | None, ...]) -> dict[str, Any]:
    return {name: None if item is None else item[1] for name, item in zip(names, items, strict=True)}
