"""Serialized CQL values as JSON text: collections, tuples and user types as one column (docs/reference/data-types.md).

Each value has one text, and each text is of one value: nothing is lost.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.types import marshal
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
from cdc_common.messages.avro.cql_values import NATIVE_ENCODERS, EmptyValueError, Encoder
from cdc_common.messages.avro.encoding import encode_string
from cdc_common.messages.avro.form_values import (
    RANGES,
    decode_decimal,
    decode_duration,
    decode_value,
    decode_varint,
    in_range,
)
from cdc_common.messages.avro.number_texts import decimal_text, duration_text, integer_text
from cdc_common.messages.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cdc_common.messages.avro.type_forms import TypeForms

Text: TypeAlias = Callable[[bytes], str]
"""The JSON text of a serialized value. EmptyValueError, FormatError."""

_QUIET_NAN = {4: b"\x7f\xc0\x00\x00", 8: b"\x7f\xf8\x00\x00\x00\x00\x00\x00"}
_FLOATS = {4: ">f", 8: ">d"}


def json_encoder(cql_type: CqlType, forms: TypeForms) -> Encoder:
    """Encodes a value, or the (path, value) pairs of a multi-cell column, as an Avro string of JSON."""
    text: Callable[[Any], str] = _cells(cql_type, forms) if _is_multi_cell(cql_type) else _value(cql_type, forms)
    return lambda image: encode_string(text(image))


def _is_multi_cell(cql_type: CqlType) -> bool:
    return bool(getattr(cql_type, "is_multi_cell", False))


def _cells(cql_type: CqlType, forms: TypeForms) -> Callable[[tuple[tuple[bytes, bytes], ...]], str]:
    match cql_type:
        case ListType(of, _):
            element = _value(of, forms)
            return lambda cells: _array(element(value) for _, value in cells)
        case SetType(of, _):
            element = _value(of, forms)
            return lambda cells: _array(element(path) for path, _ in cells)
        case MapType(keys, values, _):
            key, item = _key(keys, forms), _value(values, forms)
            return lambda cells: _object((key(path), item(value)) for path, value in cells)
        case UserType():
            return _field_cells(cql_type, forms)
    raise AssertionError(cql_type)


def _field_cells(cql_type: UserType, forms: TypeForms) -> Callable[[tuple[tuple[bytes, bytes], ...]], str]:
    names = [quoted(name) for name in cql_type.field_names]
    texts = [_value(of, forms) for of in cql_type.field_types]

    def text(cells: tuple[tuple[bytes, bytes], ...]) -> str:
        found: dict[int, str] = {}
        for path, value in cells:
            place = int.from_bytes(path, "big")
            if place >= len(names):
                raise MessageError(f"field {place} of a user type that has {len(names)}")
            found[place] = texts[place](value)
        return _object((names[place], found[place]) for place in sorted(found))

    return text


def _value(cql_type: CqlType, forms: TypeForms) -> Text:  # noqa: PLR0911 - one for each kind of type
    match cql_type:
        case NativeType(name):
            return _native(name, forms)
        case CustomType():
            return _blob
        case ListType(of, _) | SetType(of, _):
            element = _value(of, forms)
            return lambda value: _array(element(item) for item in marshal.elements(_not_empty(value)))
        case VectorType(of, _):
            element = _value(of, forms)
            return lambda value: _array(element(item) for item in marshal.vector_elements(cql_type, _not_empty(value)))
        case MapType(keys, values, _):
            key, item = _key(keys, forms), _value(values, forms)
            return lambda value: _object((key(name), item(inner)) for name, inner in marshal.pairs(_not_empty(value)))
        case TupleType(types):
            return _tuple([_value(of, forms) for of in types])
        case UserType():
            return _user_type(cql_type, forms)


def _tuple(texts: Sequence[Text]) -> Text:
    """An array with null for what is missing."""

    def text(value: bytes) -> str:
        found = marshal.fields(_not_empty(value), len(texts))
        return _array("null" if item is None else of(item) for of, item in zip(texts, found, strict=True))

    return text


def _user_type(cql_type: UserType, forms: TypeForms) -> Text:
    """An object without the fields that are null: so a field that is added changes no text."""
    names = [quoted(name) for name in cql_type.field_names]
    texts = [_value(of, forms) for of in cql_type.field_types]

    def text(value: bytes) -> str:
        found = marshal.fields(_not_empty(value), len(texts))
        return _object((name, of(item)) for name, of, item in zip(names, texts, found, strict=True) if item is not None)

    return text


def _key(cql_type: CqlType, forms: TypeForms) -> Text:
    """A map's key: a string, or the text of anything else as a string."""
    value = _value(cql_type, forms)

    def text(key: bytes) -> str:
        found = value(key)
        return found if found[0] == '"' else quoted(found)

    return text


def _native(name: str, forms: TypeForms) -> Text:  # noqa: C901, PLR0911 - one for each kind of type
    match name:
        case "text" | "ascii":
            return _texts(name)
        case "decimal":
            return lambda value: f'"{decimal_text(*decode_decimal(value))}"'
        case "varint":
            return lambda value: f'"{integer_text(decode_varint(value))}"'
        case "duration":
            return lambda value: f'"{duration_text(decode_duration(value))}"'
        case "float" | "double":
            return _floating(name)
        case "blob" | "empty":
            return _blob
        case "boolean":
            return lambda value: "false" if NATIVE_ENCODERS[name](value) == b"\0" else "true"
        case "uuid" | "timeuuid" | "inet":
            return lambda value: f'"{NATIVE_ENCODERS[name](value)[1:].decode()}"'
    check = NATIVE_ENCODERS[name]
    if name in RANGES:
        check = in_range(name, forms.out_of_range, check)

    def integer(value: bytes) -> str:
        check(value)
        return str(decode_value(name, value))

    return integer


def _texts(name: str) -> Text:
    encoding = "ascii" if name == "ascii" else "utf-8"

    def text(value: bytes) -> str:
        try:
            return quoted(value.decode(encoding))
        except UnicodeDecodeError as error:
            raise FormatError(f"text that is not {encoding}", position=error.start) from None

    return text


def _floating(name: str) -> Text:
    """The shortest text that is read as the number; JSON has no number for the others, which are strings."""

    def text(value: bytes) -> str:
        NATIVE_ENCODERS[name](value)
        [number] = struct.unpack(_FLOATS[len(value)], value)
        if math.isnan(number):
            return '"NaN"' if value == _QUIET_NAN[len(value)] else f'"NaN:{value.hex()}"'
        if math.isinf(number):
            return '"Infinity"' if number > 0 else '"-Infinity"'
        return repr(number)

    return text


def _blob(value: bytes) -> str:
    return f'"0x{value.hex()}"'


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _array(items: Iterable[str]) -> str:
    return f"[{','.join(items)}]"


def _object(entries: Iterable[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{name}:{value}" for name, value in entries) + "}"


def _not_empty(value: bytes) -> bytes:
    if not value:
        raise EmptyValueError
    return value
