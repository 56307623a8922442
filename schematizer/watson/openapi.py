"""An OpenAPI description as pages show it: operations by their first word, with parameters, bodies and answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_METHODS = ("get", "post", "put", "delete")
_MAX_DEPTH = 4


class Value(NamedTuple):
    """A parameter, or a field of a body or an answer."""

    # Its name, with those that it is in.
    name: str
    # Its type in words.
    type: str
    # Whether it must be there.
    is_required: bool
    # Its place: path, query or header; empty for a field.
    place: str = ""
    # Its description.
    doc: str = ""


class Operation(NamedTuple):
    """A path with a method."""

    # Its name, which no other has.
    id: str
    # The method, in capital letters.
    method: str
    # The path, with the one below which the interface is mounted.
    path: str
    # The group: the path's first word.
    group: str
    # What it does, as the description has it.
    doc: str
    # The parameters.
    parameters: list[Value]
    # The fields of the body.
    body: list[Value]
    # The type of the answer, in words.
    answer: str
    # The fields of the answer.
    fields: list[Value]


def operations(description: Mapping[str, Any], root: str) -> list[Operation]:
    """The operations of an interface, which is mounted below `root`, by group and path."""
    reader = _Reader(description.get("components", {}).get("schemas", {}))
    found = [
        reader.operation(root, path, method, item[method])
        for path, item in description.get("paths", {}).items()
        for method in _METHODS
        if method in item
    ]
    return sorted(found, key=lambda operation: (operation.group, operation.path))


class _Reader(NamedTuple):
    """Reads operations."""

    # The schemas that others refer to, by name.
    schemas: Mapping[str, Any]

    def operation(self, root: str, path: str, method: str, said: Mapping[str, Any]) -> Operation:
        answer: Mapping[str, Any] = next(
            (said["responses"][code] for code in said["responses"] if code.startswith("2")), {}
        )
        shape = _json_schema(answer)
        return Operation(
            said["operationId"],
            method.upper(),
            f"{root}{path}",
            path.split("/")[1],
            " ".join((said.get("description") or said.get("summary", "")).split()),
            [self.parameter(one) for one in said.get("parameters", ())],
            list(self.fields(_json_schema(said.get("requestBody", {})))),
            self.words(shape) if shape else "nothing",
            list(self.fields(shape)),
        )

    def parameter(self, said: Mapping[str, Any]) -> Value:
        shape = said.get("schema", {})
        words = _with_default(self.words(shape), shape)
        return Value(said["name"], words, said.get("required", False), said["in"], said.get("description", ""))

    def fields(self, shape: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[Value]:
        """The fields of an object, or of the objects in a list; those inside follow each."""
        shape = self.resolved(shape)
        if depth > _MAX_DEPTH:
            return
        if "items" in shape:
            yield from self.fields(shape["items"], prefix, depth + 1)
        for choice in shape.get("anyOf", ()):
            yield from self.fields(choice, prefix, depth + 1)
        required = shape.get("required", ())
        for name, inner in shape.get("properties", {}).items():
            path = f"{prefix}{name}"
            words = _with_default(self.words(inner), inner)
            yield Value(path, words, name in required, doc=inner.get("description", ""))
            yield from self.fields(inner, f"{path}.", depth + 1)

    def words(self, shape: Mapping[str, Any]) -> str:
        """A type in words."""
        shape = self.resolved(shape)
        if "anyOf" in shape:
            return " or ".join(self.words(choice) for choice in shape["anyOf"])
        if "enum" in shape:
            return " or ".join(map(json.dumps, shape["enum"]))
        kind = str(shape.get("type", "anything"))
        if kind == "array":
            return f"list of {self.words(shape.get('items', {}))}"
        if kind == "object" and isinstance(shape.get("additionalProperties"), dict):
            return f"object of {self.words(shape['additionalProperties'])} by name"
        return f"{kind} ({shape['format']})" if "format" in shape else kind

    def resolved(self, shape: Mapping[str, Any]) -> Mapping[str, Any]:
        reference = shape.get("$ref", "")
        found: Mapping[str, Any] = self.schemas.get(reference.rpartition("/")[2], {}) if reference else shape
        return found


def _json_schema(said: Mapping[str, Any]) -> Mapping[str, Any]:
    content = said.get("content", {})
    shape: Mapping[str, Any] = content.get("application/json", {}).get("schema", {})
    return shape


def _with_default(words: str, shape: Mapping[str, Any]) -> str:
    default = shape.get("default")
    return words if default is None else f"{words}; {json.dumps(default)} if it is left out"
