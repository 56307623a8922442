"""Whether a field's default is of its type, as org.apache.avro.Schema.isValidDefault; avro does not check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Lookup = Callable[[str, str], tuple[dict[str, Any], str]]
"""(name, namespace) → the definition and the namespace that encloses what it contains."""

_INTEGER_BITS = {"int": 31, "long": 63}


class Defaults:
    """Judges the defaults of one schema. A record is compared with a value once: records that contain each other, in
    unions, would be compared with what is inside a value in two ways at each of its levels.
    """

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._records: dict[tuple[int, int], bool] = {}  # by the ids of definition and value, which the schema holds

    def is_valid(self, schema: Any, value: object, namespace: str) -> bool:  # noqa: ANN401 - JSON
        """Return whether it is. `schema` is canonical JSON. A union's default may be of any branch (Avro 1.12; before,
        only of the first).
        """
        if isinstance(schema, list):
            return any(self.is_valid(branch, value, namespace) for branch in schema)
        if isinstance(schema, dict):
            return self._is_value_of(schema, value, schema.get("namespace", namespace))
        simple = _is_primitive_value(schema, value)
        if simple is not None:
            return simple
        definition, space = self._lookup(schema, namespace)
        return self._is_value_of(definition, value, space)

    def _is_value_of(self, schema: dict[str, Any], value: object, namespace: str) -> bool:
        match schema["type"]:
            case "array":
                items = schema["items"]
                valid = isinstance(value, list) and all(self.is_valid(items, item, namespace) for item in value)
            case "map":
                type_ = schema["values"]
                valid = isinstance(value, dict) and all(
                    self.is_valid(type_, item, namespace) for item in value.values()
                )
            case "record" | "error":
                # A record that is not complete yet contains the field: such a default would contain itself forever.
                valid = isinstance(value, dict) and "fields" in schema and self._is_record(schema, value, namespace)
            case "enum" | "fixed":
                valid = isinstance(value, str)
            case primitive:
                valid = bool(_is_primitive_value(primitive, value))
        return valid

    def _is_record(self, schema: dict[str, Any], value: dict[str, Any], namespace: str) -> bool:
        pair = (id(schema), id(value))
        known = self._records.get(pair)
        if known is None:
            fields = schema["fields"]
            known = self._records[pair] = all(self._is_valid_field(field, value, namespace) for field in fields)
        return known

    def _is_valid_field(self, field: dict[str, Any], value: dict[str, Any], namespace: str) -> bool:
        if field["name"] not in value:
            return "default" in field
        return self.is_valid(field["type"], value[field["name"]], namespace)


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
