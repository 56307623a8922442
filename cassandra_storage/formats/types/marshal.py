"""CQL types and the bytes of their values (org.apache.cassandra.db.marshal).

Equality of types is structural. `is_multi_cell` is true for non-frozen collections and user types, whose elements are
cells of their own. A clustering's reversed order is the column's (`ColumnMetadata.is_reversed`), not the type's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives.vint import read_unsigned_vint, write_unsigned_vint
from cassandra_storage.formats.types.serializers import NATIVE_DECODERS, BigDecimal, Decoder, Duration

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "LEXICAL_UUID_TYPE",
    "BigDecimal",
    "CqlType",
    "CustomType",
    "Decoder",
    "Duration",
    "ListType",
    "MapType",
    "NativeType",
    "SetType",
    "TupleType",
    "UserType",
    "VectorType",
    "decode",
    "decoder",
    "elements",
    "fields",
    "fixed_length",
    "pairs",
    "user_types",
    "vector_elements",
]


@dataclass(frozen=True, slots=True)
class NativeType:
    """One of CQL's native types."""

    # Its CQL name. text and varchar are both `text`.
    name: str


@dataclass(frozen=True, slots=True)
class ListType:
    """A list."""

    # The type of the elements.
    elements: CqlType
    # Whether it is not frozen, so that each element is a cell of its own.
    is_multi_cell: bool


@dataclass(frozen=True, slots=True)
class SetType:
    """A set."""

    # The type of the elements.
    elements: CqlType
    # Whether it is not frozen, so that each element is a cell of its own.
    is_multi_cell: bool


@dataclass(frozen=True, slots=True)
class MapType:
    """A map."""

    # The type of the keys.
    keys: CqlType
    # The type of the values.
    values: CqlType
    # Whether it is not frozen, so that each entry is a cell of its own.
    is_multi_cell: bool


@dataclass(frozen=True, slots=True)
class TupleType:
    """A tuple, which is always frozen."""

    # The types of the elements, in order.
    types: tuple[CqlType, ...]


@dataclass(frozen=True, slots=True)
class UserType:
    """A user type."""

    # The name of the keyspace.
    keyspace: str
    # The name of the type.
    name: str
    # The names of the fields, in order.
    field_names: tuple[str, ...]
    # The types of the fields, in order.
    field_types: tuple[CqlType, ...]
    # Whether it is not frozen, so that each field is a cell of its own.
    is_multi_cell: bool


@dataclass(frozen=True, slots=True)
class VectorType:
    """A vector."""

    # The type of the elements.
    elements: CqlType
    # The number of elements.
    dimension: int


@dataclass(frozen=True, slots=True)
class CustomType:
    """A type known only by its Java class, such as DynamicCompositeType: its values stay bytes."""

    # The full name of the Java class.
    class_name: str


LEXICAL_UUID_TYPE = "org.apache.cassandra.db.marshal.LexicalUUIDType"  # a uuid that is ordered by its bytes

CqlType: TypeAlias = NativeType | ListType | SetType | MapType | TupleType | UserType | VectorType | CustomType


_FIXED_LENGTHS = {
    "boolean": 1,
    "int": 4,
    "bigint": 8,
    "float": 4,
    "double": 8,
    "timestamp": 8,
    "uuid": 16,
    "timeuuid": 16,
    "empty": 0,
}


def user_types(type_: CqlType) -> Iterator[UserType]:
    """The user types that a type is made of, itself included."""
    return (inner_type for inner_type in all_types(type_) if isinstance(inner_type, UserType))


def all_types(type_: CqlType) -> Iterator[CqlType]:
    """The types that a type is made of, itself first."""
    yield type_
    inner: tuple[CqlType, ...] = ()
    match type_:
        case ListType(of, _) | SetType(of, _) | VectorType(of, _):
            inner = (of,)
        case MapType(keys, values, _):
            inner = (keys, values)
        case TupleType(types):
            inner = types
        case UserType():
            inner = type_.field_types
    for inner_type in inner:
        yield from all_types(inner_type)


def fixed_length(type_: CqlType) -> int | None:
    """AbstractType.valueLengthIfFixed: the bytes of every value if values are written without lengths, otherwise None
    (date, time, smallint, tinyint, counter and inet among them).
    """
    match type_:
        case NativeType(name):
            return _FIXED_LENGTHS.get(name)
        case CustomType(class_name):
            return 16 if class_name == LEXICAL_UUID_TYPE else None
        case VectorType(elements, dimension):
            length = fixed_length(elements)
            return None if length is None else length * dimension
        case _:
            return None


def decode(type_: CqlType, value: bytes) -> object:
    """decoder(type_)(value)."""
    return decoder(type_)(value)


def decoder(type_: CqlType) -> Decoder:  # noqa: PLR0911  one for each kind of type
    """The function that turns a type's serialized values into Python's; build it once for a column.

    int for all integers, timestamp (ms), time (ns), date (days since 1970-01-01) and counter; str, bytes, bool, float,
    UUID, IPv4Address or IPv6Address, BigDecimal, Duration; list for list, set and vector; a list of pairs for map;
    a tuple for tuple and user type, with None for null and for fields that the value does not have; bytes for a custom
    type. None for an empty value of a type that allows it. FormatError for what is malformed.
    """
    match type_:
        case NativeType(name):
            return NATIVE_DECODERS[name]
        case ListType(of, _) | SetType(of, _):
            return _list_decoder(of)
        case MapType(keys, values, _):
            return _map_decoder(keys, values)
        case TupleType(types):
            return _tuple_decoder(types)
        case UserType():
            return _tuple_decoder(type_.field_types)
        case VectorType():
            return _vector_decoder(type_)
        case CustomType():
            return NATIVE_DECODERS["blob"]


def _list_decoder(of: CqlType) -> Decoder:
    decode_element = decoder(of)
    return lambda value: [decode_element(element) for element in elements(value)]


def _map_decoder(keys: CqlType, values: CqlType) -> Decoder:
    decode_key, decode_value = decoder(keys), decoder(values)
    return lambda value: [(decode_key(key), decode_value(mapped)) for key, mapped in pairs(value)]


def _tuple_decoder(types: tuple[CqlType, ...]) -> Decoder:
    decoders = tuple(map(decoder, types))

    def decode_tuple(value: bytes) -> tuple[object, ...] | None:
        if not value:
            return None
        split = fields(value, len(decoders))
        return tuple(
            None if field is None else decode_field(field) for decode_field, field in zip(decoders, split, strict=True)
        )

    return decode_tuple


def _vector_decoder(type_: VectorType) -> Decoder:
    decode_element = decoder(type_.elements)
    return lambda value: [decode_element(element) for element in vector_elements(type_, value)]


def elements(value: bytes) -> list[bytes]:
    """The serialized elements of a frozen list or set (CollectionSerializer): a count, then each with its size."""
    return _sized_values(value, 1)


def pairs(value: bytes) -> list[tuple[bytes, bytes]]:
    """The serialized entries of a frozen map, in the order written, which is its keys'."""
    flat = _sized_values(value, 2)
    return list(zip(flat[::2], flat[1::2], strict=True))


def _sized_values(value: bytes, per_element: int) -> list[bytes]:
    if len(value) < 4:
        raise FormatError(f"a collection of {len(value)} bytes")
    count = int.from_bytes(value[:4], "big", signed=True)
    if count < 0:
        raise FormatError(f"a collection of {count} elements")
    values = []
    position = 4
    for _ in range(count * per_element):  # a count that is too large ends at the first missing size
        size = int.from_bytes(value[position : position + 4], "big", signed=True)
        start = position + 4
        position = start + size
        if size < 0 or start > len(value) or position > len(value):
            raise FormatError(f"an element of {size} bytes in a collection", position=start)
        values.append(value[start:position])
    if position != len(value):
        raise FormatError("bytes after a collection's last element", position=position)
    return values


def fields(value: bytes, count: int) -> list[bytes | None]:
    """The serialized fields of a tuple or user type of `count` fields (TupleType.split); None for null and for the
    last ones where the value, written before they were added, does not have them.
    """
    split: list[bytes | None] = []
    position = 0
    while position < len(value):
        if len(split) == count:
            raise FormatError(f"a tuple of more than {count} fields", position=position)
        size = int.from_bytes(value[position : position + 4], "big", signed=True)
        start = position + 4
        position = start + max(size, 0)
        if start > len(value) or position > len(value):
            raise FormatError(f"a field of {size} bytes in a tuple", position=start)
        split.append(None if size < 0 else value[start:position])
    split.extend([None] * (count - len(split)))
    return split


def vector_elements(type_: VectorType, value: bytes) -> list[bytes]:
    """The serialized elements of a vector: side by side if their length is fixed, otherwise each after its length."""
    length = fixed_length(type_.elements)
    if length is None:
        return _variable_vector(type_.dimension, value)
    if not value or len(value) != length * type_.dimension:
        raise FormatError(f"a vector of {type_.dimension} elements in {len(value)} bytes")
    return [value[position : position + length] for position in range(0, len(value), length)]


def _variable_vector(dimension: int, value: bytes) -> list[bytes]:
    split = []
    position = 0
    for _ in range(dimension):
        size, _ = read_unsigned_vint(value, position)
        start = position + len(write_unsigned_vint(size))  # as Cassandra steps, whatever form the size is in
        position = start + size
        if position > len(value):
            raise FormatError(f"an element of {size} bytes in a vector", position=start)
        split.append(value[start:position])
    if position != len(value):
        raise FormatError("bytes after a vector's last element", position=position)
    return split
