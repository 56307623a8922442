"""Renamed fields of user types: Avro matches the fields of records by name, Cassandra stores them by position."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def with_aliases(schema: dict[str, Any], earlier: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The schema, with the names of `earlier` schemas as aliases of renamed fields, so that it reads their messages."""
    result = deepcopy(schema)
    fields_of = _user_types(result)
    for old in earlier:
        for name, old_fields in _user_types(old).items():
            current = {field["name"] for field in fields_of.get(name, ())}
            for field, old_field in zip(fields_of.get(name, ()), old_fields, strict=False):
                aliases = field.get("aliases", [])
                if old_field["name"] not in current and old_field["name"] not in aliases:
                    field["aliases"] = [*aliases, old_field["name"]]
    return result


def is_misread(schema: dict[str, Any], earlier: dict[str, Any]) -> bool:
    """Whether a field has a name that another field had: earlier messages would be read into the wrong field."""
    if _renames_in_json(schema, earlier) or _renames_of_parts(schema, earlier):
        return True
    before = _user_types(earlier)
    for name, fields in _user_types(schema).items():
        former = {field["name"]: position for position, field in enumerate(before.get(name, ()))}
        if any(former.get(field["name"], position) != position for position, field in enumerate(fields)):
            return True
    return False


def _renames_in_json(schema: dict[str, Any], earlier: dict[str, Any]) -> bool:
    """Whether a JSON column has other names for a user type's fields: earlier messages have the former ones."""
    before = _json_fields(earlier)
    return any(
        name in before.get(column, {}) and fields[: len(before[column][name])] != before[column][name]
        for column, types in _json_fields(schema).items()
        for name, fields in types.items()
    )


def _renames_of_parts(schema: dict[str, Any], earlier: dict[str, Any]) -> bool:
    """Whether a column whose parts are fields has other names for them."""
    present = _parts(schema)
    return any(present.get(column, names)[: len(names)] != names for column, names in _parts(earlier).items())


def _parts(envelope: dict[str, Any]) -> dict[str, list[str]]:
    """The names of the parts of each column whose parts are fields, in order."""
    found: dict[str, list[str]] = {}
    for record in _records(envelope):
        for field in record["fields"]:
            if "cqlColumn" in field:
                found.setdefault(field["cqlColumn"], []).append(field["cqlName"])
    return found


def _json_fields(envelope: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
    """By column, the names of the fields of the user types that are in its JSON."""
    found = {}
    for record in _records(envelope):
        for field in record["fields"]:
            branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
            for branch in branches:
                if isinstance(branch, dict) and "jsonFields" in branch:
                    found[field["name"]] = branch["jsonFields"]
    return found


def _user_types(envelope: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The fields of each user type of a table, by its full name, in order."""
    namespace = (
        f"{envelope['namespace']}.types"  # cdc_common.messages.avro.cql_types; a table may be called `types` as well
    )
    records = (record for record in _records(envelope) if record["namespace"] == namespace)
    return {f"{namespace}.{record['name']}": record["fields"] for record in records}


def _records(schema: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - any part of a schema
    if isinstance(schema, list):
        for part in schema:
            yield from _records(part)
    elif isinstance(schema, dict):
        if schema["type"] == "record":
            yield schema
            yield from _records([field["type"] for field in schema["fields"]])
        else:
            yield from _records([part for part in (schema.get("items"), schema.get("values")) if part is not None])
            yield from _records(schema["type"] if isinstance(schema["type"], (dict, list)) else [])
