"""CQL types and the bytes of their values (org.apache.cassandra.db.marshal).

Equality of types is structural. `is_multi_cell` is true for non-frozen collections and user types, whose elements are
cells of their own. A clustering's reversed order is the column's (`ColumnMetadata.is_reversed`), not the type's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias


@dataclass(frozen=True, slots=True)
class NativeType:
    """One of CQL's native types by its CQL name (text and varchar are both `text`)."""

    name: str


@dataclass(frozen=True, slots=True)
class ListType:
    elements: CqlType
    is_multi_cell: bool


@dataclass(frozen=True, slots=True)
class SetType:
    elements: CqlType
    is_multi_cell: bool


@dataclass(frozen=True, slots=True)
class MapType:
    keys: CqlType
    values: CqlType
    is_multi_cell: bool


@dataclass(frozen=True, slots=True)
class TupleType:
    types: tuple[CqlType, ...]


@dataclass(frozen=True, slots=True)
class UserType:
    keyspace: str
    name: str
    field_names: tuple[str, ...]
    field_types: tuple[CqlType, ...]
    is_multi_cell: bool


@dataclass(frozen=True, slots=True)
class VectorType:
    elements: CqlType
    dimension: int


@dataclass(frozen=True, slots=True)
class CustomType:
    """A type known only by its Java class, such as DynamicCompositeType: its values stay bytes."""

    class_name: str


CqlType: TypeAlias = NativeType | ListType | SetType | MapType | TupleType | UserType | VectorType | CustomType


class BigDecimal(NamedTuple):
    """java.math.BigDecimal: `unscaled` * 10 ** -`scale`."""

    unscaled: int
    scale: int


class Duration(NamedTuple):
    """org.apache.cassandra.cql3.Duration: all three have one sign."""

    months: int
    days: int
    nanoseconds: int


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


def fixed_length(type_: CqlType) -> int | None:
    """AbstractType.valueLengthIfFixed: the bytes of every value where a value is written without its length, else None
    (date, time, smallint, tinyint, counter and inet among them)."""
    match type_:
        case NativeType(name):
            return _FIXED_LENGTHS.get(name)
        case VectorType(elements, dimension):
            length = fixed_length(elements)
            return None if length is None else length * dimension
        case _:
            return None


def decoder(type_: CqlType) -> Callable[[bytes], object]:
    """The function that turns serialized values of the type into Python's; build it once for a column."""
    raise NotImplementedError


def decode(type_: CqlType, value: bytes) -> object:
    """decoder(type_)(value)."""
    return decoder(type_)(value)


def elements(value: bytes) -> list[bytes]:
    """The serialized elements of a frozen list or set."""
    raise NotImplementedError


def pairs(value: bytes) -> list[tuple[bytes, bytes]]:
    """The serialized entries of a frozen map."""
    raise NotImplementedError


def fields(value: bytes, count: int) -> list[bytes | None]:
    """The serialized fields of a tuple or user type of `count` fields; None for null and for missing ones."""
    raise NotImplementedError


def vector_elements(type_: VectorType, value: bytes) -> list[bytes]:
    """The serialized elements of a vector."""
    raise NotImplementedError
