"""Finds values of partition keys that share their Avro form with other bytes.

Cassandra distinguishes partitions by the bytes of their keys, even if the key's type considers two values equal: a
boolean has 255 forms of true, a tuple may lack its last fields or have null there, and a varint may have more bytes
than it needs, which its text does not show. One form of each is the key in Avro; the others cannot be represented.
Clusterings are compared by their types, so all forms are one row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from cassandra_storage.formats.primitives.vint import write_unsigned_vint
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
from cdc_common.messages.avro.form_values import is_shortest

if TYPE_CHECKING:
    from cdc_common.messages.avro.type_forms import TypeForms

Check: TypeAlias = Callable[[bytes], bool]

_NULL = b"\xff\xff\xff\xff"


def distinct_check(cql_type: CqlType, forms: TypeForms) -> Check | None:
    """The function that is true for values that no others share their Avro form with; None if it is so for all values.

    forms: of the messages. It raises FormatError for what is no value of the type.
    """
    key_forms = forms.for_keys()
    is_json = key_forms.is_json(cql_type)
    as_text = frozenset(
        name
        for name, is_text in (("varint", key_forms.varints == "string"), ("decimal", key_forms.decimals == "string"))
        if is_json or is_text
    )
    return _check(cql_type, as_text)


def _check(cql_type: CqlType, as_text: frozenset[str]) -> Check | None:  # noqa: PLR0911  one for each kind of type
    """as_text: the types of numbers that are shown without their bytes."""
    match cql_type:
        case NativeType("boolean"):
            return lambda value: value in (b"", b"\x00", b"\x01")
        case NativeType(name) if name in as_text:
            return is_shortest if name == "varint" else _is_decimal_shortest
        case ListType(of, _) | SetType(of, _):
            return _list_check(of, as_text)
        case MapType(keys, values, _):
            return _map_check(keys, values, as_text)
        case TupleType(types):
            return _tuple_check(types, as_text)
        case UserType():
            return _tuple_check(cql_type.field_types, as_text)
        case VectorType():
            return _vector_check(cql_type, as_text)
    return None


def _is_decimal_shortest(value: bytes) -> bool:
    return is_shortest(value[4:])


def _list_check(of: CqlType, as_text: frozenset[str]) -> Check | None:
    check = _check(of, as_text)
    return None if check is None else lambda value: all(map(check, elements(value)))


def _map_check(keys: CqlType, values: CqlType, as_text: frozenset[str]) -> Check | None:
    of_key, of_value = _check(keys, as_text), _check(values, as_text)
    if of_key is None and of_value is None:
        return None

    def check(value: bytes) -> bool:
        return all((not of_key or of_key(key)) and (not of_value or of_value(item)) for key, item in pairs(value))

    return check


def _tuple_check(types: tuple[CqlType, ...], as_text: frozenset[str]) -> Check:
    """All fields must be there, and null be of the size -1."""
    checks = tuple(_check(of, as_text) for of in types)

    def check(value: bytes) -> bool:
        split = fields(value, len(checks))
        written = b"".join(_NULL if field is None else len(field).to_bytes(4, "big") + field for field in split)
        return written == value and all(
            is_distinct is None or field is None or is_distinct(field)
            for is_distinct, field in zip(checks, split, strict=True)
        )

    return check


def _vector_check(cql_type: VectorType, as_text: frozenset[str]) -> Check | None:
    of_element = _check(cql_type.elements, as_text)
    has_sizes = fixed_length(cql_type.elements) is None
    if of_element is None and not has_sizes:
        return None

    def check(value: bytes) -> bool:
        split = vector_elements(cql_type, value)
        sized = (write_unsigned_vint(len(element)) + element for element in split)
        return (not has_sizes or b"".join(sized) == value) and (of_element is None or all(map(of_element, split)))

    return check
