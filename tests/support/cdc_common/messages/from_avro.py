"""The values that an Avro reader reads, back to the bytes that Cassandra has: by data-types.md alone, field by field.

The readers leave logical types out, so that a timestamp or a date is the number that was written.
"""

from __future__ import annotations

import ipaddress
import struct
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

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
from tests.support.cdc_common.messages import from_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Cells: TypeAlias = (
    "tuple[tuple[bytes | None, bytes], ...]"  # a list's paths, its elements' times, are not in the message
)


def _signed(size: int) -> Callable[[int], bytes]:
    return lambda number: number.to_bytes(size, "big", signed=True)


_NATIVE: dict[str, Callable[[Any], bytes]] = {
    "ascii": lambda text: text.encode("ascii"),
    "text": str.encode,
    "tinyint": _signed(1),
    "smallint": _signed(2),
    "int": _signed(4),
    "bigint": _signed(8),
    "counter": _signed(8),
    "timestamp": _signed(8),
    "time": _signed(8),
    "date": lambda days: (days + 2**31).to_bytes(4, "big"),
    "boolean": lambda value: bytes((value,)),
    "float": lambda number: struct.pack(">f", number),
    "double": lambda number: struct.pack(">d", number),
    "blob": bytes,
    "varint": bytes,
    "empty": bytes,
    "uuid": lambda text: UUID(text).bytes,
    "timeuuid": lambda text: UUID(text).bytes,
    "decimal": lambda record: struct.pack(">i", record["scale"]) + record["value"],
    "duration": lambda record: b"".join(write_vint(record[part]) for part in ("months", "days", "nanos")),
    "inet": lambda text: ipaddress.ip_address(text).packed,
}


_TEXTS: dict[str, Callable[[str], Any]] = {
    "decimal": from_text.decimal,
    "varint": from_text.integer,
    "duration": from_text.duration,
}


def serialized(cql_type: CqlType, value: Any) -> bytes:  # noqa: ANN401, PLR0911  what a reader gives; one for each kind
    """The serialized value of a frozen type."""
    if isinstance(value, str):
        value = _from_text(cql_type, value)
    match cql_type:
        case NativeType(name):
            return _NATIVE[name](value)
        case CustomType():
            return bytes(value)
        case ListType(of) | SetType(of):
            return _counted([serialized(of, item) for item in value], len(value))
        case MapType(keys, values):
            pairs = list(_pairs(value))
            flat = [part for key, item in pairs for part in (serialized(keys, key), serialized(values, item))]
            return _counted(flat, len(pairs))
        case TupleType(types):
            return _fields(types, value)
        case UserType():
            return _fields(cql_type.field_types, value)
        case VectorType(of, _):
            parts = [serialized(of, item) for item in value]
            if fixed_length(of) is None:
                parts = [write_unsigned_vint(len(part)) + part for part in parts]
            return b"".join(parts)


def cells(cql_type: CqlType, value: Any) -> Cells:  # noqa: ANN401  what a reader gives
    """The cells of a multi-cell type: their paths and values."""
    if isinstance(value, str):
        value = from_text.parsed(cql_type, value)
    match cql_type:
        case ListType(of, _):
            return tuple((None, serialized(of, item)) for item in value)
        case SetType(of, _):
            return tuple((serialized(of, item), b"") for item in value)
        case MapType(keys, values, _):
            return tuple((serialized(keys, key), serialized(values, item)) for key, item in _pairs(value))
        case UserType():
            found = enumerate(zip(cql_type.field_types, value.values(), strict=True))
            return tuple((struct.pack(">H", at), serialized(of, item)) for at, (of, item) in found if item is not None)
    raise AssertionError(cql_type)


def _from_text(cql_type: CqlType, text: str) -> Any:  # noqa: ANN401  what a reader gives
    """Return the value that Avro's own type has instead of a text."""
    if isinstance(cql_type, NativeType):
        return _TEXTS[cql_type.name](text) if cql_type.name in _TEXTS else text
    return from_text.parsed(cql_type, text)


def _pairs(value: dict[str, Any] | list[dict[str, Any]]) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, dict) else ((entry["key"], entry["value"]) for entry in value)


def _fields(types: Sequence[CqlType], record: dict[str, Any]) -> bytes:
    return b"".join(
        struct.pack(">i", -1) if item is None else _sized(serialized(of, item))
        for of, item in zip(types, record.values(), strict=True)
    )


def _counted(values: Sequence[bytes], count: int) -> bytes:
    return struct.pack(">i", count) + b"".join(map(_sized, values))


def _sized(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def without_logical_types(schema: Any) -> Any:  # noqa: ANN401  any JSON
    """fastavro turns a timestamp or date into Python's, whose years end at 9999: an exact reader takes the number."""
    if isinstance(schema, dict):
        return {name: without_logical_types(value) for name, value in schema.items() if name != "logicalType"}
    return [without_logical_types(value) for value in schema] if isinstance(schema, list) else schema
