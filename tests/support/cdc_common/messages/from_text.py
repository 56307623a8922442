"""Text and JSON of change messages as what Avro's own types would give (from_avro): by data-types.md alone."""

from __future__ import annotations

import json
import struct
from typing import Any

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
from dev.local_stack.clients.text_forms import decimal_of, duration_of

_STRINGS = {"text", "ascii", "uuid", "timeuuid", "inet"}
_NAN = {"float": "7fc00000", "double": "7ff8000000000000"}


def decimal(text: str) -> dict[str, Any]:
    sign, digits, exponent = decimal_of(text).as_tuple()
    assert isinstance(exponent, int)
    unscaled = int(decimal_of("".join(map(str, digits)))) * (-1 if sign else 1)
    return {"value": varint(unscaled), "scale": -exponent}


def varint(number: int) -> bytes:
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


def integer(text: str) -> bytes:
    return varint(int(decimal_of(text)))


def duration(text: str) -> dict[str, Any]:
    return dict(zip(("months", "days", "nanos"), duration_of(text), strict=True))


def parsed(cql_type: CqlType, text: str) -> Any:  # noqa: ANN401 - what a reader gives
    return value_of(cql_type, json.loads(text, object_pairs_hook=list))


def value_of(cql_type: CqlType, tree: Any) -> Any:  # noqa: ANN401, PLR0911 - JSON; one for each kind of type
    if tree is None:
        return None
    match cql_type:
        case NativeType(name):
            return _native(name, tree)
        case CustomType():
            return bytes.fromhex(tree.removeprefix("0x"))
        case ListType(of) | SetType(of) | VectorType(of, _):
            return [value_of(of, item) for item in tree]
        case MapType(keys, values):
            return [{"key": _key(keys, key), "value": value_of(values, item)} for key, item in tree]
        case TupleType(types):
            return {f"f{at}": value_of(of, item) for at, (of, item) in enumerate(zip(types, tree, strict=True))}
        case UserType():
            found = dict(tree)
            assert len(found) == len(tree)
            fields = zip(cql_type.field_names, cql_type.field_types, strict=True)
            return {name: value_of(of, found.get(name)) for name, of in fields}


def _key(cql_type: CqlType, text: str) -> Any:  # noqa: ANN401
    if isinstance(cql_type, CustomType) or (isinstance(cql_type, NativeType) and _is_string(cql_type.name, text)):
        return value_of(cql_type, text)
    return parsed(cql_type, text)


def _is_string(name: str, text: str) -> bool:
    if name in ("float", "double"):
        return text.startswith("NaN") or text.endswith("Infinity")
    return name in _STRINGS | {"blob", "empty", "varint", "decimal", "duration"}


def _native(name: str, tree: Any) -> Any:  # noqa: ANN401, PLR0911 - one for each kind of type
    match name:
        case "decimal":
            return decimal(tree)
        case "varint":
            return integer(tree)
        case "duration":
            return duration(tree)
        case "blob" | "empty":
            return bytes.fromhex(tree.removeprefix("0x"))
        case "float" | "double":
            if isinstance(tree, str) and tree.startswith("NaN"):
                data = bytes.fromhex(tree.partition(":")[2] or _NAN[name])
                return struct.unpack(">f" if name == "float" else ">d", data)[0]
            return float(tree)
    return tree
