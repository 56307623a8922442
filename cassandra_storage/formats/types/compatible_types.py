"""Decides whether a table's type reads the values of another one (org.apache.cassandra.db.marshal.AbstractType,
isValueCompatibleWith): ALTER changes a type only to one that does.
"""

from __future__ import annotations

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
)

# By the table's type, the types whose values it reads. blob reads every type.
_READS = {
    "bigint": ("timestamp",),
    "date": ("int",),
    "text": ("ascii",),
    "time": ("bigint", "timestamp"),
    "timestamp": ("bigint",),
    "uuid": ("timeuuid",),
    "varint": ("int", "bigint", "timestamp"),
}
_READ_ALL = ("blob", "empty")  # EmptyType: a compact table's value may have been written as blob (CASSANDRA-15778)


def reads(type_: CqlType, written: CqlType) -> bool:
    """Return whether `type_` reads values that were written as `written`.

    Whether a type is frozen is not compared, a user type is a tuple, and either side may have more fields: ALTER TYPE
    adds some, and DROP makes a tuple of a user type. A type of another class than Cassandra's own may be any.
    """
    if isinstance(type_, CustomType) or isinstance(written, CustomType):
        return True
    if isinstance(type_, NativeType):
        own = isinstance(written, NativeType) and (written == type_ or written.name in _READS.get(type_.name, ()))
        return own or type_.name in _READ_ALL
    parts = _parts(type_, written)
    return parts is not None and all(reads(own, other) for own, other in parts)


def is_extension(type_: CqlType, earlier: CqlType) -> bool:
    """Return whether ALTER TYPE can have made a type of an earlier one: the user types within may have more fields, and
    other names for them.
    """
    parts = _parts(type_, earlier)
    if parts is None or type(type_) is not type(earlier):
        return type_ == earlier
    has_all = not isinstance(earlier, TupleType | UserType) or len(parts) == len(_fields(earlier))
    return has_all and _is_multi_cell(type_) is _is_multi_cell(earlier) and all(is_extension(*part) for part in parts)


def _is_multi_cell(type_: CqlType) -> bool:
    return isinstance(type_, ListType | SetType | MapType | UserType) and type_.is_multi_cell


def _parts(type_: CqlType, written: CqlType) -> list[tuple[CqlType, CqlType]] | None:
    """The pairs of inner types that must fit; None if the two types are of different kinds or have no inner types."""
    match type_, written:
        case (ListType(of, _), ListType(others, _)) | (SetType(of, _), SetType(others, _)):
            return [(of, others)]
        case (MapType(keys, values, _), MapType(other_keys, other_values, _)):
            return [(keys, other_keys), (values, other_values)]
        case (VectorType(of, dimension), VectorType(others, other_dimension)) if dimension == other_dimension:
            return [(of, others)]
        case (TupleType() | UserType(), TupleType() | UserType()):
            return list(zip(_fields(type_), _fields(written), strict=False))
    return None


def _fields(type_: TupleType | UserType) -> tuple[CqlType, ...]:
    return type_.types if isinstance(type_, TupleType) else type_.field_types
