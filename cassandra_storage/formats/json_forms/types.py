"""CQL types as self-contained JSON: a user type has its fields wherever it is used.

A native type is its name; any other an object: `{"list": T}`, `{"set": T}`, `{"map": [K, V]}`, `{"tuple": [T, …]}`,
`{"user": [keyspace, name, [[field, T], …]]}`, `{"vector": [T, dimension]}`, `{"custom": class}`; a non-frozen one says
`"multi_cell": true`. Only a column's own type can be non-frozen; the flag of an inner type is ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from collections.abc import Mapping


def type_to_json(column_type: CqlType) -> str | dict[str, Any]:
    """The JSON of a column's type."""
    value = _to_json(column_type)
    if isinstance(value, dict) and getattr(column_type, "is_multi_cell", False):
        value["multi_cell"] = True
    return value


def _to_json(cql_type: CqlType) -> str | dict[str, Any]:  # noqa: PLR0911  one for each kind of type
    match cql_type:
        case NativeType(name):
            return name
        case ListType(elements):
            return {"list": _to_json(elements)}
        case SetType(elements):
            return {"set": _to_json(elements)}
        case MapType(keys, values):
            return {"map": [_to_json(keys), _to_json(values)]}
        case TupleType(types):
            return {"tuple": [_to_json(element) for element in types]}
        case UserType(keyspace, name, names, types):
            fields = [[field, _to_json(field_type)] for field, field_type in zip(names, types, strict=True)]
            return {"user": [keyspace, name, fields]}
        case VectorType(elements, dimension):
            return {"vector": [_to_json(elements), dimension]}
        case CustomType(class_name):
            return {"custom": class_name}


def type_from_json(value: str | Mapping[str, Any]) -> CqlType:  # noqa: PLR0911  one for each kind of type
    """The inverse of type_to_json; ValueError, KeyError or TypeError for anything else."""
    if isinstance(value, str):
        return NativeType(value)
    is_multi_cell = bool(value.get("multi_cell", False))
    ((kind, content),) = ((name, inner) for name, inner in value.items() if name != "multi_cell")
    match kind:
        case "list":
            return ListType(type_from_json(content), is_multi_cell)
        case "set":
            return SetType(type_from_json(content), is_multi_cell)
        case "map":
            keys, values = content
            return MapType(type_from_json(keys), type_from_json(values), is_multi_cell)
        case "tuple":
            return TupleType(tuple(type_from_json(element) for element in content))
        case "user":
            keyspace, name, fields = content
            types = tuple(type_from_json(field_type) for _, field_type in fields)
            return UserType(keyspace, name, tuple(field for field, _ in fields), types, is_multi_cell)
        case "vector":
            elements, dimension = content
            return VectorType(type_from_json(elements), int(dimension))
        case "custom":
            return CustomType(str(content))
        case _:
            raise ValueError(f"unknown type {kind}")
