"""Decides whether a reader with one Avro schema can read messages with another: Avro's schema resolution, for our own
schemas.

A registry may compare a schema only with the one before. A topic's newest schema must read all messages of the topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

_PROMOTED = {
    "long": {"int"},
    "float": {"int", "long"},
    "double": {"int", "long", "float"},
    "string": {"bytes"},
    "bytes": {"string"},
}

Schema = Any
Named = Mapping[str, dict[str, Any]]


def can_read(reader: dict[str, Any], writer: dict[str, Any]) -> bool:
    """Whether the reader's schema can read every message of the writer's."""
    return _Resolution(_records(reader), _records(writer)).can_read(reader, writer)


class _Resolution(NamedTuple):
    """The records of both schemas by full name: after its definition a record is only named."""

    reader_records: Named
    writer_records: Named

    def can_read(self, reader: Schema, writer: Schema) -> bool:  # noqa: PLR0911  one for each kind of type
        if isinstance(writer, list):
            return all(self.can_read(reader, branch) for branch in writer)
        if isinstance(reader, list):
            return any(self.can_read(branch, writer) for branch in reader)
        reader, writer = _resolved(reader, self.reader_records), _resolved(writer, self.writer_records)
        kind = reader["type"]
        if kind != writer["type"]:
            return writer["type"] in _PROMOTED.get(kind, ())
        match kind:
            case "array":
                return self.can_read(reader["items"], writer["items"])
            case "map":
                return self.can_read(reader["values"], writer["values"])
            case "record":
                return _full_name(reader) == _full_name(writer) and self._can_read_fields(reader, writer)
        return True

    def _can_read_fields(self, reader: dict[str, Any], writer: dict[str, Any]) -> bool:
        written = {field["name"]: field for field in writer["fields"]}
        for field in reader["fields"]:
            names = [field["name"], *field.get("aliases", ())]
            found = next((written[name] for name in names if name in written), None)
            if found is None and "default" not in field:
                return False
            if found is not None and not self.can_read(field["type"], found["type"]):
                return False
        return True


def _resolved(schema: Schema, records: Named) -> dict[str, Any]:
    if isinstance(schema, str):
        return records.get(schema) or {"type": schema}
    resolved: dict[str, Any] = schema
    return resolved


def _full_name(record: dict[str, Any]) -> str:
    return f"{record['namespace']}.{record['name']}"


def _records(schema: Schema) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    if isinstance(schema, list):
        for branch in schema:
            found |= _records(branch)
    elif isinstance(schema, dict):
        if schema["type"] == "record":
            found[_full_name(schema)] = schema
            found |= _records([field["type"] for field in schema["fields"]])
        found |= _records([schema[part] for part in ("items", "values") if part in schema])
    return found
