"""The one form of all serialized values that `SELECT` shows alike.

Cassandra keeps the bytes that a client sends, and several may stand for one value: a varint with leading zero bytes,
any byte but 0 for true, a tuple without its last nulls, a frozen map in another order. Rows are compared, and messages
made, in one form of each, so that such a write is no change. A value's other differences are shown: 1.0 and 1.00 are
two decimals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives.vint import read_vint, write_unsigned_vint, write_vint
from cassandra_storage.formats.types.marshal import (
    CqlType,
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

Pairs: TypeAlias = tuple[tuple[bytes, bytes], ...]
ValueForm: TypeAlias = Callable[[bytes], bytes]
CellsForm: TypeAlias = Callable[[Pairs], Pairs]

_NULL = b"\xff\xff\xff\xff"
_SCALE_SIZE = 4


def value_form(cql_type: CqlType) -> ValueForm | None:
    """The function that gives a serialized value its one form; None if all values of the type have one form only.

    What is no value of the type stays as it is.
    """
    form = _form(cql_type)
    return None if form is None else lambda value: _in_form(form, value)


def cells_form(cql_type: CqlType) -> CellsForm:
    """The function that gives the (path, value) pairs of a multi-cell column their one form: what SELECT does not show
    of a cell, such as the path of a list's element, is b"".
    """
    match cql_type:
        case ListType(of, _):
            element = _total(of)
            return lambda cells: tuple((b"", element(value)) for _, value in cells)
        case SetType(of, _):
            element = _total(of)
            return lambda cells: tuple((element(path), b"") for path, _ in cells)
        case MapType(keys, values, _):
            key, item = _total(keys), _total(values)
            return lambda cells: tuple((key(path), item(value)) for path, value in cells)
        case UserType():
            types = dict(enumerate(map(_total, cql_type.field_types)))
            return lambda cells: tuple(
                (path, types.get(int.from_bytes(path, "big"), _same)(value)) for path, value in cells
            )
    raise ValueError("only a collection or a user type has several cells")


def _in_form(form: ValueForm, value: bytes) -> bytes:
    try:
        return form(value) if value else value
    except FormatError:
        return value


def _same(value: bytes) -> bytes:
    return value


def _total(cql_type: CqlType) -> ValueForm:
    return value_form(cql_type) or _same


def _form(cql_type: CqlType) -> ValueForm | None:  # noqa: PLR0911 - one for each kind of type
    match cql_type:
        case NativeType(name):
            return _NATIVE.get(name)
        case ListType(of, _) | SetType(of, _):
            return _list_form(value_form(of))
        case MapType(keys, values, _):
            is_avro_map = isinstance(keys, NativeType) and keys.name in {"text", "ascii"}
            return _map_form(value_form(keys), value_form(values), is_ordered=not is_avro_map)
        case TupleType(types):
            return _tuple_form(tuple(map(_total, types)))
        case UserType():
            return _tuple_form(tuple(map(_total, cql_type.field_types)))
        case VectorType():
            return _vector_form(cql_type)
    return None


def _boolean(value: bytes) -> bytes:
    return value if len(value) != 1 or value == b"\x00" else b"\x01"


def _varint(value: bytes) -> bytes:
    """The shortest two's complement."""
    first = 0
    while first < len(value) - 1 and (value[first], value[first + 1] >> 7) in {(0, 0), (0xFF, 1)}:
        first += 1
    return value[first:]


def _decimal(value: bytes) -> bytes:
    return value if len(value) <= _SCALE_SIZE else value[:_SCALE_SIZE] + _varint(value[_SCALE_SIZE:])


def _duration(value: bytes) -> bytes:
    months, position = read_vint(value, 0)
    days, position = read_vint(value, position)
    nanoseconds, _ = read_vint(value, position)
    return write_vint(months) + write_vint(days) + write_vint(nanoseconds)


_NATIVE: dict[str, ValueForm] = {"boolean": _boolean, "varint": _varint, "decimal": _decimal, "duration": _duration}


def _list_form(of: ValueForm | None) -> ValueForm | None:
    """Elements stay in their order, a frozen set's too: it is shown."""
    if of is None:
        return None
    return lambda value: _collection([of(item) for item in elements(value)], 1)


def _map_form(keys: ValueForm | None, values: ValueForm | None, *, is_ordered: bool) -> ValueForm | None:
    """A map that Avro has as a map has no order, and no key twice."""
    if is_ordered and keys is None and values is None:
        return None

    def form(value: bytes) -> bytes:
        found = [(keys(key) if keys else key, values(item) if values else item) for key, item in pairs(value)]
        shown = found if is_ordered else sorted(dict(found).items())
        return _collection([part for pair in shown for part in pair], 2)

    return form


def _tuple_form(types: tuple[ValueForm, ...]) -> ValueForm:
    """Without its last nulls, except for the first field: so it is the same before a field is added to the type."""

    def form(value: bytes) -> bytes:
        parts = [
            _NULL if part is None else _sized(of(part))
            for of, part in zip(types, fields(value, len(types)), strict=True)
        ]
        while len(parts) > 1 and parts[-1] == _NULL:
            parts.pop()
        return b"".join(parts)

    return form


def _vector_form(cql_type: VectorType) -> ValueForm | None:
    of = value_form(cql_type.elements)
    if fixed_length(cql_type.elements) is None:
        return lambda value: b"".join(
            write_unsigned_vint(len(item)) + item for item in map(of or _same, vector_elements(cql_type, value))
        )
    return None if of is None else lambda value: b"".join(map(of, vector_elements(cql_type, value)))


def _collection(parts: list[bytes], per_element: int) -> bytes:
    return (len(parts) // per_element).to_bytes(4, "big") + b"".join(map(_sized, parts))


def _sized(value: bytes) -> bytes:
    return len(value).to_bytes(4, "big") + value
