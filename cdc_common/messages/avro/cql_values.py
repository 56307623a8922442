"""Serialized CQL values as Avro's binary encoding of the types in cdc_common.messages.avro.cql_types."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.types import marshal
from cassandra_storage.formats.types.marshal import NativeType, VectorType
from cdc_common.messages.avro.encoding import NULL, VALUE, encode_array, encode_bytes, encode_long, encode_string
from cdc_common.messages.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_storage.formats.types.serializers import Duration

Encoder: TypeAlias = Callable[[Any], bytes]
"""Encodes a serialized value, or (path, value) pairs of a multi-cell type. EmptyValueError, FormatError."""


class EmptyValueError(Exception):
    """An empty value (b"") of a type whose Avro type has none, in the value or anywhere inside it."""


def _wrong_length(name: str, value: bytes) -> Exception:
    return FormatError(f"a {name} of {len(value)} bytes") if value else EmptyValueError()


def _integer(name: str, size: int) -> Encoder:
    def encode(value: bytes) -> bytes:
        if len(value) != size:
            raise _wrong_length(name, value)
        return encode_long(int.from_bytes(value, "big", signed=True))

    return encode


def _floating(name: str, size: int) -> Encoder:
    """Big-endian to little-endian: NaNs keep their bits."""

    def encode(value: bytes) -> bytes:
        if len(value) != size:
            raise _wrong_length(name, value)
        return value[::-1]

    return encode


def _date(value: bytes) -> bytes:
    """Days since 1970-01-01; Cassandra's 2 ** 31 is that day."""
    if len(value) != 4:
        raise _wrong_length("date", value)
    return encode_long(int.from_bytes(value, "big") - 2**31)


def _boolean(value: bytes) -> bytes:
    if len(value) != 1:
        raise _wrong_length("boolean", value)
    return b"\x00" if value == b"\x00" else b"\x01"


def _text(encoding: str) -> Encoder:
    def encode(value: bytes) -> bytes:
        try:
            value.decode(encoding)
        except UnicodeDecodeError as error:
            raise FormatError(f"text that is not {encoding}", position=error.start) from None
        return encode_long(len(value)) + value

    return encode


def _varint(value: bytes) -> bytes:
    if not value:
        raise EmptyValueError
    return encode_bytes(value)


def _uuid(value: bytes) -> bytes:
    if len(value) != 16:
        raise _wrong_length("uuid", value)
    text = value.hex()
    return f"\x48{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}".encode()  # 0x48: 36 characters


def _decimal(value: bytes) -> bytes:
    if len(value) < 5:
        raise _wrong_length("decimal", value)
    return encode_long(int.from_bytes(value[:4], "big", signed=True)) + encode_bytes(value[4:])


def _inet(value: bytes) -> bytes:
    address = marshal.decode(NativeType("inet"), value)
    if address is None:
        raise EmptyValueError
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return encode_string(f"::ffff:{address.ipv4_mapped}")  # as Python 3.13 has it; before it was ::ffff:102:304
    return encode_string(str(address))


def _duration(value: bytes) -> bytes:
    duration = cast("Duration", marshal.decode(NativeType("duration"), _not_empty(value)))
    return encode_long(duration.months) + encode_long(duration.days) + encode_long(duration.nanoseconds)


NATIVE_ENCODERS: dict[str, Encoder] = {
    "ascii": _text("ascii"),
    "bigint": _integer("bigint", 8),
    "blob": encode_bytes,
    "boolean": _boolean,
    "counter": _integer("counter", 8),  # its total, as in RowImage
    "date": _date,
    "decimal": _decimal,
    "double": _floating("double", 8),
    "duration": _duration,
    "empty": encode_bytes,
    "float": _floating("float", 4),
    "inet": _inet,
    "int": _integer("int", 4),
    "smallint": _integer("smallint", 2),
    "text": _text("utf-8"),
    "time": _integer("time", 8),
    "timestamp": _integer("timestamp", 8),
    "timeuuid": _uuid,
    "tinyint": _integer("tinyint", 1),
    "uuid": _uuid,
    "varint": _varint,
}


def _not_empty(value: bytes) -> bytes:
    if not value:
        raise EmptyValueError
    return value


def frozen_list(element: Encoder) -> Encoder:
    """Encodes a frozen list or set."""
    return lambda value: encode_array([element(item) for item in marshal.elements(_not_empty(value))])


def vector(type_: VectorType, element: Encoder) -> Encoder:
    return lambda value: encode_array([element(item) for item in marshal.vector_elements(type_, _not_empty(value))])


def frozen_map(key: Encoder, value: Encoder) -> Encoder:
    """Encodes a frozen map as a map, or as an array of entries: both are encoded alike."""
    return lambda image: encode_array([key(name) + value(item) for name, item in marshal.pairs(_not_empty(image))])


def frozen_record(fields: Sequence[Encoder]) -> Encoder:
    """Encodes a tuple or frozen user type, whose fields are nullable."""

    def encode(value: bytes) -> bytes:
        values = marshal.fields(_not_empty(value), len(fields))
        return b"".join(
            [NULL if item is None else VALUE + field(item) for field, item in zip(fields, values, strict=True)]
        )

    return encode


def list_cells(element: Encoder) -> Encoder:
    """Encodes a multi-cell list: paths are timeuuids, values the elements."""
    return lambda cells: encode_array([element(value) for _, value in cells])


def set_cells(element: Encoder) -> Encoder:
    """Encodes a multi-cell set: paths are the elements."""
    return lambda cells: encode_array([element(path) for path, _ in cells])


def map_cells(key: Encoder, value: Encoder) -> Encoder:
    """Encodes a multi-cell map: paths are the keys."""
    return lambda cells: encode_array([key(path) + value(item) for path, item in cells])


def record_cells(fields: Sequence[Encoder]) -> Encoder:
    """Encodes a multi-cell user type: a path is a field's position, 2 bytes."""

    def encode(cells: tuple[tuple[bytes, bytes], ...]) -> bytes:
        parts = [NULL] * len(fields)
        for path, value in cells:
            position = int.from_bytes(path, "big")
            if position >= len(fields):
                raise MessageError(f"field {position} of a user type that has {len(fields)}")
            parts[position] = VALUE + fields[position](value)
        return b"".join(parts)

    return encode
