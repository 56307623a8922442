"""The fields of a schema as a person sees them: a path, a type in words, and the documentation."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from schematizer.avro_schemas.parsing import PRIMITIVES, InvalidSchemaError, full_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_ENVELOPE = frozenset({"before", "after", "source", "op"})
_SOURCE_TYPES = ("cqlType", "sqlType")
_VALUES_AS_RECORDS = frozenset({"decimal", "duration"})
_WRAPPERS = frozenset({"io.debezium.data.VariableScaleDecimal"})
"""Names of records that Kafka Connect's programs take for one value."""
_MAX_DEPTH = 12  # a record may contain itself
_MAX_ELEMENTS = 20_000


class Element(NamedTuple):
    """An element of a schema."""

    # Names joined by dots; a list's items add [], a map's values {}.
    path: str
    # Its Avro type, as text.
    type: str
    # Its type in the source's database; None if the schema does not say it.
    source_type: str | None
    # Whether it may be null.
    is_nullable: bool
    # The schema's documentation of it.
    doc: str | None


def elements(canonical: str) -> list[Element]:
    """The fields of a schema's canonical text, from the outside in. A change envelope's fields are those of its row, as
    `before` and `after` have them. A schema that is no record has one element, of an empty path.
    """
    return list(_elements(canonical))


def check_number(canonical: str) -> None:
    """InvalidSchemaError for a schema with too many fields for a page and a database. A record that several fields have
    counts in each of them.
    """
    if next(islice(_elements(canonical), _MAX_ELEMENTS, None), None) is not None:
        raise InvalidSchemaError(f"it has more than {_MAX_ELEMENTS:,} fields, those of its records included")


def is_within(path: str, paths: Collection[str]) -> bool:
    """Whether a field, or one that it is in, is among the paths."""
    return any(path == outer or path.startswith((f"{outer}.", f"{outer}[", f"{outer}{{")) for outer in paths)


def _elements(canonical: str) -> Iterator[Element]:
    schema = json.loads(canonical)
    names: dict[str, dict[str, Any]] = {}
    _collect(schema, "", names)
    walk = _Walk(names)
    row = _row_of_envelope(schema)
    if row is None:
        return walk.elements(schema, "")
    return walk.elements(row, schema.get("namespace", ""))


def document(canonical: str) -> str | None:
    """The documentation of the schema's record; for a change envelope, its row's."""
    row = row_of(json.loads(canonical))
    return None if row is None else row.get("doc")


def row_of(schema: Any) -> dict[str, Any] | None:  # noqa: ANN401 - JSON
    """The record of a canonical schema; of a change envelope, its row's. None of a schema that is no record."""
    if not isinstance(schema, dict) or schema["type"] not in ("record", "error"):
        return None
    return _row_of_envelope(schema) or schema


def type_text(schema: Any) -> str:  # noqa: ANN401 - JSON
    """Return the type in words: `array<string>`, `long (timestamp-millis)`, `enum(A, B)`."""
    if isinstance(schema, str):
        return schema
    if isinstance(schema, list):
        return " | ".join(type_text(branch) for branch in schema)
    kind = schema["type"]
    match kind:
        case "array":
            text = f"array<{type_text(schema['items'])}>"
        case "map":
            text = f"map<{type_text(schema['values'])}>"
        case "enum":
            text = f"enum({', '.join(schema['symbols'])})"
        case "fixed":
            text = f"fixed({schema['size']})"
        case "record" | "error":
            text = f"record {schema['name']}"
        case _:
            text = str(kind)
    logical = schema.get("logicalType")
    if logical == "decimal":
        return f"decimal({schema.get('precision')}, {schema.get('scale', 0)})"
    return f"{text} ({logical})" if logical else text


class _Walk(NamedTuple):
    """`names`: the definition of each named type by its full name; a reference is looked up in its namespace first."""

    names: dict[str, dict[str, Any]]

    def elements(self, schema: Any, namespace: str) -> Iterator[Element]:  # noqa: ANN401 - JSON
        if isinstance(schema, dict) and schema["type"] in ("record", "error"):
            yield from self._record_fields(schema, namespace, "", 0)
        else:
            is_nullable, kept = _without_null(schema)
            yield Element("", type_text(kept), _source_type(schema), is_nullable, None)

    def _record_fields(self, record: dict[str, Any], namespace: str, prefix: str, depth: int) -> Iterator[Element]:
        space = record.get("namespace", namespace)
        for field in record["fields"]:
            path = f"{prefix}{field['name']}"
            is_nullable, kept = _without_null(field["type"])
            yield Element(path, type_text(kept), _source_type(field, kept), is_nullable, field.get("doc"))
            if depth < _MAX_DEPTH:
                yield from self._inside(kept, space, path, depth + 1)

    def _inside(self, schema: Any, namespace: str, path: str, depth: int) -> Iterator[Element]:  # noqa: ANN401 - JSON
        if isinstance(schema, str):
            if schema not in PRIMITIVES:
                found = self.names.get(full_name(schema, namespace)) or self.names.get(schema)
                if found is not None and depth == 1:  # a record that was shown is not shown again further down
                    yield from self._inside(found, namespace, path, depth)
            return
        if isinstance(schema, list):
            for branch in schema:
                yield from self._inside(branch, namespace, path, depth)
            return
        match schema["type"]:
            case "record" | "error":
                if not _is_one_value(schema):
                    yield from self._record_fields(schema, namespace, f"{path}.", depth)
            case "array":
                yield from self._inside(_without_null(schema["items"])[1], namespace, f"{path}[]", depth)
            case "map":
                yield from self._inside(_without_null(schema["values"])[1], namespace, f"{path}{{}}", depth)


def _is_one_value(record: dict[str, Any]) -> bool:
    """Whether a record is the form of one value, such as a decimal of any scale."""
    return record.get("cqlType") in _VALUES_AS_RECORDS or record.get("connect.name") in _WRAPPERS


def _row_of_envelope(schema: Any) -> dict[str, Any] | None:  # noqa: ANN401 - JSON
    if not isinstance(schema, dict) or schema["type"] != "record":
        return None
    fields = {field["name"]: field["type"] for field in schema["fields"]}
    if not fields.keys() >= _ENVELOPE:
        return None
    _, before = _without_null(fields["before"])
    return before if isinstance(before, dict) and before["type"] == "record" else None


def _without_null(schema: Any) -> tuple[bool, Any]:  # noqa: ANN401 - JSON
    """Whether null is allowed, and the type without it."""
    if not isinstance(schema, list) or "null" not in schema:
        return schema == "null", schema
    rest = [branch for branch in schema if branch != "null"]
    return True, rest[0] if len(rest) == 1 else rest


def _source_type(*places: Any) -> str | None:  # noqa: ANN401 - JSON
    for place in places:
        for key in _SOURCE_TYPES:
            if isinstance(place, dict) and isinstance(place.get(key), str):
                return str(place[key])
    return None


def _collect(schema: Any, namespace: str, names: dict[str, dict[str, Any]]) -> None:  # noqa: ANN401 - JSON
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, namespace, names)
    elif isinstance(schema, dict):
        space = namespace
        if "name" in schema:
            space = schema.get("namespace", namespace)
            names[full_name(schema["name"], space)] = schema
        for inner in (
            schema.get("items"),
            schema.get("values"),
            *(field["type"] for field in schema.get("fields", ())),
        ):
            _collect(inner, space, names)
