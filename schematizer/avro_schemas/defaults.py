"""Whether a field's default is of its type, as org.apache.avro.Schema.isValidDefault; avro does not check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Lookup = Callable[[str, str], tuple[dict[str, Any], str]]
"""(name, namespace) → the definition and the namespace that encloses what it contains."""

_INTEGER_BITS = {"int": 31, "long": 63}


def is_valid_default(schema: Any, value: object, namespace: str, lookup: Lookup) -> bool:  # noqa: ANN401 - JSON
    """Return whether the default is valid. `schema` is canonical JSON. A union's default may be of any branch (Avro
    1.12; before, only of the first).
    """
    if isinstance(schema, list):
        return any(is_valid_default(branch, value, namespace, lookup) for branch in schema)
    if isinstance(schema, dict):
        return _is_value_of(schema, value, schema.get("namespace", namespace), lookup)
    simple = _is_primitive_value(schema, value)
    if simple is not None:
        return simple
    definition, space = lookup(schema, namespace)
    return _is_value_of(definition, value, space, lookup)


def _is_value_of(schema: dict[str, Any], value: object, namespace: str, lookup: Lookup) -> bool:
    match schema["type"]:
        case "array":
            items = schema["items"]
            valid = isinstance(value, list) and all(is_valid_default(items, each, namespace, lookup) for each in value)
        case "map":
            type_ = schema["values"]
            valid = isinstance(value, dict) and all(
                is_valid_default(type_, each, namespace, lookup) for each in value.values()
            )
        case "record" | "error":
            # A record that is not complete yet contains the field: such a default would contain itself forever.
            valid = (
                isinstance(value, dict)
                and "fields" in schema
                and all(_is_valid_field(field, value, namespace, lookup) for field in schema["fields"])
            )
        case "enum" | "fixed":
            valid = isinstance(value, str)
        case primitive:
            valid = bool(_is_primitive_value(primitive, value))
    return valid


def _is_valid_field(field: dict[str, Any], value: dict[str, Any], namespace: str, lookup: Lookup) -> bool:
    if field["name"] not in value:
        return "default" in field
    return is_valid_default(field["type"], value[field["name"]], namespace, lookup)


def _is_primitive_value(type_: str, value: object) -> bool | None:
    """None if the type is not a primitive one."""
    match type_:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            limit = 1 << _INTEGER_BITS[type_]
            return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "bytes" | "string":
            return isinstance(value, str)
    return None
