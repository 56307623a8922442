"""CQL types and the bytes of their values (org.apache.cassandra.db.marshal).

Equality of types is structural. `is_multi_cell` is true for non-frozen collections and user types, whose elements are
cells of their own. A clustering's reversed order is the column's (`ColumnMetadata.is_reversed`), not the type's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


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
