"""Keys whose byte order and identity are those of Cassandra's comparators (org.apache.cassandra.utils.bytecomparable).

A clustering's key is its components, each after a separator, and a terminator (ClusteringComparator.asByteComparable,
version OSS50): two clusterings have one key if and only if Cassandra takes them for one row, no key is a prefix of
another, and the order of the keys is that of the rows. Cassandra writes a null and an empty element of a tuple alike
although it orders them; here they differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.clustering import Clustering, ClusteringBound, Kind
from cassandra_storage.formats.types.byte_source import NATIVE_ENCODERS, ByteEncoder, invert, lexical_uuid
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
    all_types,
    elements,
    fields,
    pairs,
    vector_elements,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cassandra_storage.formats.schema.tables import ColumnMetadata

_BEFORE = b"\x20"  # ByteSource.LT_NEXT_COMPONENT: below all that begins with the prefix
_TERMINATOR = b"\x38"
_NULL = b"\x3e"  # NEXT_COMPONENT_NULL: below all values, reversed ones too
_EMPTY = b"\x3f"
_NEXT = b"\x40"
_EMPTY_REVERSED = b"\x41"
_AFTER = b"\x60"  # GT_NEXT_COMPONENT: above all that begins with the prefix

_ENDS = {
    Kind.EXCL_END_BOUND: _BEFORE,
    Kind.INCL_START_BOUND: _BEFORE,
    Kind.EXCL_END_INCL_START_BOUNDARY: _BEFORE,
    Kind.INCL_END_EXCL_START_BOUNDARY: _AFTER,
    Kind.INCL_END_BOUND: _AFTER,
    Kind.EXCL_START_BOUND: _AFTER,
}


def clustering_encoder(columns: Sequence[ColumnMetadata]) -> Callable[[Clustering], bytes]:
    """The function that makes clustering keys of a table's clustering columns; build it once for a table."""
    components = tuple(_component(column.type, is_reversed=column.is_reversed) for column in columns)
    if len(components) == 1:
        return _single_encoder(components[0])

    def encode(values: Clustering) -> bytes:
        if len(values) != len(components):
            raise FormatError(f"{len(values)} values for {len(components)} clustering columns")
        key = b""
        for component, value in zip(components, values, strict=True):
            key += component(value)
        return key + _TERMINATOR

    return encode


def _single_encoder(component: Callable[[bytes | None], bytes]) -> Callable[[Clustering], bytes]:
    def encode(values: Clustering) -> bytes:
        if len(values) != 1:
            raise FormatError(f"{len(values)} values for one clustering column")
        return component(values[0]) + _TERMINATOR

    return encode


def clustering_key(columns: Sequence[ColumnMetadata], values: Clustering) -> bytes:
    """clustering_encoder(columns)(values)."""
    return clustering_encoder(columns)(values)


def bound_encoder(columns: Sequence[ColumnMetadata]) -> Callable[[ClusteringBound], bytes]:
    """The function that makes the keys of bounds, which lie between those of clusterings; build it once for a table."""
    components = tuple(_component(column.type, is_reversed=column.is_reversed) for column in columns)

    def encode(bound: ClusteringBound) -> bytes:
        if len(bound.values) > len(components) or bound.kind not in _ENDS:
            raise FormatError(f"no bound over {len(components)} clustering columns")
        prefix = [component(value) for component, value in zip(components, bound.values, strict=False)]
        return b"".join(prefix) + _ENDS[bound.kind]

    return encode


def bound_keys(columns: Sequence[ColumnMetadata], start: ClusteringBound, end: ClusteringBound) -> tuple[bytes, bytes]:
    """(first, last): a clustering is in the range if and only if first <= its key < last."""
    encode = bound_encoder(columns)
    return encode(start), encode(end)


def path_encoder(type_: CqlType) -> Callable[[bytes], bytes]:
    """The function that makes keys of the cell paths of a multi-cell column of this type: in the order and with the
    identity of ColumnMetadata.cellPathComparator. FormatError if the type is of another kind.
    """
    match type_:
        case MapType(keys, _, _):
            return value_encoder(keys)
        case SetType(of, _):
            return value_encoder(of)
        case ListType():
            return NATIVE_ENCODERS["timeuuid"]
        case UserType():
            return _field_encoder(len(type_.field_names))
    raise FormatError("only a collection or a user type has cell paths")


def path_key(type_: CqlType, path: bytes) -> bytes:
    """path_encoder(type_)(path)."""
    return path_encoder(type_)(path)


def has_order(type_: CqlType) -> bool:
    """Return whether the order of the type's values is known."""
    return all(_is_known(inner_type) for inner_type in all_types(type_))


def _is_known(type_: CqlType) -> bool:
    match type_:
        case NativeType(name):
            return name in NATIVE_ENCODERS
        case CustomType(class_name):
            return class_name == LEXICAL_UUID_TYPE
    return True


def value_encoder(type_: CqlType) -> ByteEncoder:  # noqa: PLR0911  one for each kind of type
    """AbstractType.asComparableBytes: the type's values in its comparator's order; b"" for an empty value.

    The encoder raises FormatError for what is no value of the type, and for any value of a type without a known order.
    """
    match type_:
        case NativeType(name) if name in NATIVE_ENCODERS:
            return NATIVE_ENCODERS[name]
        case ListType(of, _) | SetType(of, _):
            return _list_encoder(of)
        case MapType(keys, values, _):
            return _map_encoder(keys, values)
        case TupleType(types):
            return _tuple_encoder(types)
        case UserType():
            return _tuple_encoder(type_.field_types)
        case VectorType():
            return _vector_encoder(type_)
        case CustomType(class_name) if class_name == LEXICAL_UUID_TYPE:
            return lexical_uuid
    return _unordered(type_)


def _unordered(type_: CqlType) -> ByteEncoder:
    def encode(_: bytes) -> bytes:
        raise FormatError(f"no order is known for {type_}")

    return encode


def _field_encoder(count: int) -> ByteEncoder:
    """The place of a field in a user type of `count` fields, two bytes."""
    encode_place = NATIVE_ENCODERS["smallint"]

    def encode(path: bytes) -> bytes:
        place = encode_place(path)
        if int.from_bytes(path, "big") >= count or not path:
            raise FormatError(f"a field {path.hex() or 'without a place'} of a user type of {count}")
        return place

    return encode


def _component(type_: CqlType, *, is_reversed: bool = False) -> Callable[[bytes | None], bytes]:
    """One element of a sequence with the separator before it."""
    encode = value_encoder(type_)

    def component(value: bytes | None) -> bytes:
        if value is None:
            return _NULL
        encoded = encode(value)
        return _NEXT + encoded if encoded else _EMPTY

    def reversed_component(value: bytes | None) -> bytes:
        if value is None:
            return _NULL
        encoded = encode(value)
        return _NEXT + invert(encoded) if encoded else _EMPTY_REVERSED

    return reversed_component if is_reversed else component


def _list_encoder(of: CqlType) -> ByteEncoder:
    component = _component(of)
    return lambda value: value and b"".join(map(component, elements(value))) + _TERMINATOR


def _map_encoder(keys: CqlType, values: CqlType) -> ByteEncoder:
    key_component, value_component = _component(keys), _component(values)

    def encode(value: bytes) -> bytes:
        if not value:
            return value
        entries = [key_component(key) + value_component(mapped) for key, mapped in pairs(value)]
        return b"".join(entries) + _TERMINATOR

    return encode


def _tuple_encoder(types: tuple[CqlType, ...]) -> ByteEncoder:
    """TupleType: nulls at the end are as good as missing."""
    components = tuple(map(_component, types))

    def encode(value: bytes) -> bytes:
        if not value:
            return value
        split = fields(value, len(components))
        while split and split[-1] is None:
            split.pop()
        return b"".join(component(field) for component, field in zip(components, split, strict=False)) + _TERMINATOR

    return encode


def _vector_encoder(type_: VectorType) -> ByteEncoder:
    component = _component(type_.elements)
    return lambda value: value and b"".join(map(component, vector_elements(type_, value))) + _TERMINATOR
