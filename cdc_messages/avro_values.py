"""Serialized CQL values as fastavro writes them: no logical type is left to its conversions, which know fewer dates."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from cassandra_storage import marshal
from cassandra_storage.errors import FormatError
from cassandra_storage.marshal import NativeType, VectorType
from cdc_messages.errors import MessageError

if TYPE_CHECKING:
    from cassandra_storage.serializers import Duration

Converter: TypeAlias = Callable[[Any], object]
"""From a serialized value; for a multi-cell type from its (path, value) pairs. Raises EmptyValueError, FormatError."""


class EmptyValueError(Exception):
    """An empty value (b"") of a type whose Avro type has none, in the value or anywhere inside it."""


def _bytes(value: bytes) -> bytes:
    return value


def _varint(value: bytes) -> bytes:
    if not value:
        raise EmptyValueError
    return value


def _uuid(value: bytes) -> str:
    if len(value) != 16:
        if not value:
            raise EmptyValueError
        raise FormatError(f"a uuid of {len(value)} bytes")
    text = value.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _decimal(value: bytes) -> dict[str, object]:
    if len(value) < 5:
        if not value:
            raise EmptyValueError
        raise FormatError(f"a decimal of {len(value)} bytes")
    return {"unscaled": value[4:], "scale": int.from_bytes(value[:4], "big", signed=True)}


def _inet(value: bytes) -> str:
    address = marshal.decode(NativeType("inet"), value)
    if address is None:
        raise EmptyValueError
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return f"::ffff:{address.ipv4_mapped}"  # as Python 3.13 writes it; earlier ones write ::ffff:102:304
    return str(address)


def _duration(value: bytes) -> dict[str, object]:
    if not value:
        raise EmptyValueError
    duration = cast("Duration", marshal.decode(NativeType("duration"), value))
    return {"months": duration.months, "days": duration.days, "nanos": duration.nanoseconds}


_NATIVE: dict[str, Converter] = {
    "blob": _bytes,
    "empty": _bytes,
    "varint": _varint,
    "uuid": _uuid,
    "timeuuid": _uuid,
    "decimal": _decimal,
    "inet": _inet,
    "duration": _duration,
}
_EMPTY_IS_A_VALUE = {"text", "ascii"}


def native_converter(name: str) -> Converter:
    """The converter of a native type. A counter's value is its total, 8 bytes, as in RowImage."""
    if name in _NATIVE:
        return _NATIVE[name]
    decode = marshal.decoder(NativeType("bigint" if name == "counter" else name))
    if name in _EMPTY_IS_A_VALUE:
        return decode

    def convert(value: bytes) -> object:
        if not value:
            raise EmptyValueError
        return decode(value)

    return convert


def _not_empty(value: bytes) -> bytes:
    if not value:
        raise EmptyValueError
    return value


def list_converter(element: Converter) -> Converter:
    return lambda value: [element(item) for item in marshal.elements(_not_empty(value))]


def vector_converter(vector: VectorType, element: Converter) -> Converter:
    return lambda value: [element(item) for item in marshal.vector_elements(vector, _not_empty(value))]


def map_converter(key: Converter, value: Converter) -> Converter:
    return lambda image: {key(name): value(item) for name, item in marshal.pairs(_not_empty(image))}


def entries_converter(key: Converter, value: Converter) -> Converter:
    return lambda image: [{"key": key(name), "value": value(item)} for name, item in marshal.pairs(_not_empty(image))]


def record_converter(fields: list[tuple[str, str, Converter]]) -> Converter:
    """Of a tuple or frozen user type; a field is (Avro name, its branch of the union with null, converter)."""
    count = len(fields)

    def convert(value: bytes) -> dict[str, object]:
        values = marshal.fields(_not_empty(value), count)
        return {
            name: (branch, of(item))
            for (name, branch, of), item in zip(fields, values, strict=True)
            if item is not None
        }

    return convert


def cells_list_converter(element: Converter) -> Converter:
    """Of a multi-cell list: paths are timeuuids, values the elements."""
    return lambda cells: [element(value) for _, value in cells]


def cells_set_converter(element: Converter) -> Converter:
    """Of a multi-cell set: paths are the elements."""
    return lambda cells: [element(path) for path, _ in cells]


def cells_map_converter(key: Converter, value: Converter) -> Converter:
    return lambda cells: {key(path): value(item) for path, item in cells}


def cells_entries_converter(key: Converter, value: Converter) -> Converter:
    return lambda cells: [{"key": key(path), "value": value(item)} for path, item in cells]


def cells_record_converter(fields: list[tuple[str, str, Converter]]) -> Converter:
    """Of a multi-cell user type: a path is a field's position, 2 bytes."""

    def convert(cells: tuple[tuple[bytes, bytes], ...]) -> dict[str, object]:
        record: dict[str, object] = {}
        for path, value in cells:
            position = int.from_bytes(path, "big")
            if position >= len(fields):
                raise MessageError(f"field {position} of a user type that has {len(fields)}")
            name, branch, of = fields[position]
            record[name] = (branch, of(value))
        return record

    return convert
