"""Avro schemas: parsed from JSON, validated against the specification, and written in a canonical form.

Two texts that differ only in white space, order of attributes, or how a name or a primitive type is spelled are one
schema. Unlike Avro's Parsing Canonical Form, this form keeps documentation, defaults, aliases and logical types: a
reader needs them. Checks what the avro library leaves unchecked: field names, defaults, unions with the same named
type twice.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from schematizer.avro_schemas.defaults import Defaults

if TYPE_CHECKING:
    from collections.abc import Collection, Container

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAMED = frozenset({"record", "error", "enum", "fixed"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ORDERS = ("ascending", "descending", "ignore")
_TYPE_KEYS = {
    "record": ("name", "namespace", "doc", "aliases", "fields"),
    "error": ("name", "namespace", "doc", "aliases", "fields"),
    "enum": ("name", "namespace", "doc", "aliases", "symbols", "default"),
    "fixed": ("name", "namespace", "doc", "aliases", "size"),
    "array": ("items",),
    "map": ("values",),
}
_RESERVED = frozenset({"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"})
"""Words that are no property of any type: Avro drops them from a type that does not have them."""
_FIELD_KEYS = ("name", "type", "doc", "default", "order", "aliases")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TOO_DEEP = "it is nested too deeply"
_MAX_DEPTH = 100
"""Of the JSON. It is far from where Python's own limit is, which depends on who calls: what was registered once must be
read by all others."""

Node = dict[str, Any] | list[Any] | str
"""A schema as JSON has it."""


class InvalidSchemaError(ValueError):
    """The text is not an Avro schema; the message says why and where."""


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A parsed schema."""

    # The JSON text that is stored and answered.
    canonical: str
    # The schema with each name a full one, for the compatibility check.
    resolved: Node


def parse(text: str) -> AvroSchema:
    """The schema of a JSON text; InvalidSchemaError for anything that is none."""
    try:
        tree = json.loads(text, parse_constant=_refuse_constant)
        _check_tree(tree)
        canonical = _Reader().schema(tree, "", "")
        written = json.dumps(canonical, separators=(",", ":"), allow_nan=False)
        return AvroSchema(written, _resolved(canonical, "", set()))
    except RecursionError:
        raise InvalidSchemaError(_TOO_DEEP) from None
    except InvalidSchemaError:
        raise
    except ValueError as error:
        raise InvalidSchemaError(f"it is not JSON: {error}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidSchemaError(f"it is not JSON: {name}")


def _check_tree(tree: object) -> None:
    """Of JSON: its depth, and its texts, which not every database keeps."""
    level, depth = [tree], 0
    while level:
        depth += 1
        if depth > _MAX_DEPTH:
            raise InvalidSchemaError(_TOO_DEEP)
        inner: list[object] = []
        for node in level:
            if isinstance(node, dict):
                inner += node.keys()
                inner += node.values()
            elif isinstance(node, list):
                inner += node
            elif isinstance(node, str) and not _is_text(node):
                raise InvalidSchemaError(f"the text {_short(node)} has a character that is none")
        level = inner


def _is_text(text: str) -> bool:
    """Whether it has neither U+0000 nor half of a pair of surrogates."""
    return "\0" not in text and (text.isascii() or not _SURROGATE.search(text))


def full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


class _Reader:
    """Walks one schema; `namespace` is the enclosing one ("" for none), `where` the path for messages."""

    def __init__(self) -> None:
        self.named: dict[str, dict[str, Any]] = {}
        self._defaults = Defaults(self._lookup)

    def schema(self, node: object, namespace: str, where: str) -> Node:
        """The canonical form of the node; names it defines are known from then on."""
        if isinstance(node, str):
            return self._reference(node, namespace, where)
        if isinstance(node, list):
            return self._union(node, namespace, where)
        if isinstance(node, dict):
            type_ = node.get("type")
            if isinstance(type_, str):
                return self._typed(type_, node, namespace, where)
            if isinstance(type_, dict | list) and len(node) == 1:
                return self.schema(type_, namespace, where)
        _fail(where, f"{_short(node)} is not a schema")
        return None

    def _reference(self, name: str, namespace: str, where: str) -> str:
        if name in PRIMITIVES:
            return name
        found = _find(name, namespace, self.named)
        if found is None:
            _fail(where, f"{name!r} is neither a type of Avro nor defined before")
        space, _, short = found.rpartition(".")
        return short if space in ("", namespace) else found

    def _union(self, branches: list[Any], namespace: str, where: str) -> list[Node]:
        result: list[Node] = []
        seen: set[str] = set()
        for index, branch in enumerate(branches):
            written = self.schema(branch, namespace, f"{where}/{index}")
            if isinstance(written, list):
                _fail(where, "a union stands directly in a union")
            identity = self._branch_identity(written, namespace)
            if identity in seen:
                _fail(where, f"{identity} stands twice in a union")
            seen.add(identity)
            result.append(written)
        return result

    def _branch_identity(self, branch: dict[str, Any] | str, namespace: str) -> str:
        if isinstance(branch, str):
            return branch if branch in PRIMITIVES else _find(branch, namespace, self.named) or branch
        if branch["type"] in _NAMED:
            return full_name(branch["name"], branch.get("namespace", namespace))
        return str(branch["type"])

    def _typed(self, type_: str, node: dict[str, Any], namespace: str, where: str) -> Node:
        if type_ in PRIMITIVES:
            extra = _extra(node, _RESERVED)
            return {"type": type_, **extra} if extra else type_
        match type_:
            case "array":
                inner = {"items": self._required(node, "items", namespace, where)}
            case "map":
                inner = {"values": self._required(node, "values", namespace, where)}
            case _ if type_ in _NAMED:
                return self._named_type(type_, node, namespace, where)
            case _:
                return self._reference(type_, namespace, where)
        return {"type": type_, **inner, **_extra(node, _RESERVED)}

    def _required(self, node: dict[str, Any], key: str, namespace: str, where: str) -> Node:
        if key not in node:
            _fail(where, f"{node['type']} without {key}")
        return self.schema(node[key], namespace, f"{where}/{key}")

    def _named_type(self, type_: str, node: dict[str, Any], namespace: str, where: str) -> dict[str, Any]:
        full = _defined_name(node, namespace, where)
        if full in self.named:
            _fail(where, f"{full} is defined twice")
        if full in PRIMITIVES:
            _fail(where, f"{full} is a type of Avro itself")
        space, _, short = full.rpartition(".")
        result: dict[str, Any] = {"type": type_, "name": short}
        self.named[full] = result  # at once, as it may contain itself
        if space != namespace:
            result["namespace"] = space
        result |= _texts(node, where)
        match type_:
            case "record" | "error":
                result["fields"] = self._fields(node, space, f"{where}/{short}")
            case "enum":
                result |= _enum(node, where)
            case _:
                result["size"] = _size(node, where)
        result |= _extra(node, _RESERVED.union(_TYPE_KEYS[type_]))
        return result

    def _fields(self, node: dict[str, Any], namespace: str, where: str) -> list[dict[str, Any]]:
        fields = node.get("fields")
        if not isinstance(fields, list):
            _fail(where, "the fields of a record must be a list")
        result = [self._field(field, namespace, where) for field in fields]
        names: set[str] = set()
        for name in (field["name"] for field in result):
            if name in names:
                _fail(where, f"the field {name} stands twice")
            names.add(name)
        return result

    def _field(self, field: object, namespace: str, where: str) -> dict[str, Any]:
        if not isinstance(field, dict) or not isinstance(field.get("name"), str) or "type" not in field:
            _fail(where, f"{_short(field)} is not a field with name and type")
        name = _checked_name(field["name"], where)
        where = f"{where}/{name}"
        type_ = self.schema(field["type"], namespace, where)
        result = {"name": name, "type": type_, **_texts(field, where)}
        if "default" in field:
            result["default"] = field["default"]
            if not self._defaults.is_valid(type_, field["default"], namespace):
                _fail(where, f"the default {_short(field['default'])} is not a value of its type")
        order = field.get("order", _ORDERS[0])
        if order not in _ORDERS:
            _fail(where, f"the order {_short(order)} is none of {', '.join(_ORDERS)}")
        if order != _ORDERS[0]:
            result["order"] = order
        return result | _extra(field, _FIELD_KEYS)

    def _lookup(self, name: str, namespace: str) -> tuple[dict[str, Any], str]:
        full = _find(name, namespace, self.named)
        assert full is not None
        return self.named[full], full.rpartition(".")[0]


def _resolved(node: Any, namespace: str, known: set[str]) -> Node:  # noqa: ANN401 - JSON
    """The bare structure of a canonical schema, without documentation and further properties, and with full names."""
    if isinstance(node, str):
        return node if node in PRIMITIVES else _spaced(_find(node, namespace, known) or node)
    if isinstance(node, list):
        return [_resolved(branch, namespace, known) for branch in node]
    type_ = node["type"]
    if type_ in PRIMITIVES:
        return str(type_)
    if type_ in ("array", "map"):
        key = _TYPE_KEYS[type_][0]
        return {"type": type_, key: _resolved(node[key], namespace, known)}
    space = node.get("namespace", namespace)
    full = full_name(node["name"], space)
    known.add(full)
    result: dict[str, Any] = {"type": "record" if type_ == "error" else type_, "name": _spaced(full)}
    if "aliases" in node:
        result["aliases"] = [_spaced(full_name(alias, space)) for alias in node["aliases"]]
    result |= {key: node[key] for key in ("symbols", "size", "default") if key in _TYPE_KEYS[type_] and key in node}
    if "fields" in _TYPE_KEYS[type_]:
        result["fields"] = [_resolved_field(field, space, known) for field in node["fields"]]
    return result


def _resolved_field(field: dict[str, Any], namespace: str, known: set[str]) -> dict[str, Any]:
    kept: dict[str, Any] = {key: field[key] for key in ("name", "aliases", "default") if key in field}
    return {**kept, "type": _resolved(field["type"], namespace, known)}


def _find(name: str, namespace: str, known: Container[str]) -> str | None:
    """The full name that a reference means: in the namespace, otherwise without one, as Avro for Java does."""
    return next((full for full in (full_name(name, namespace), name) if full in known), None)


def _spaced(full: str) -> str:
    """A name that means the same wherever it stands: the avro library gives a bare one the enclosing namespace."""
    return full if "." in full else f"_._.{full}"


def _defined_name(node: dict[str, Any], namespace: str, where: str) -> str:
    name, space = node.get("name"), node.get("namespace", namespace)
    if not isinstance(name, str):
        _fail(where, f"{node['type']} without a name")
    if "." in name:
        space, _, name = name.rpartition(".")
    if space is None:
        space = namespace
    if not isinstance(space, str):
        _fail(where, f"the namespace {_short(space)} is not a string")
    for part in space.split(".") if space else ():
        _checked_name(part, where)
    return full_name(_checked_name(name, where), space)


def _checked_name(name: str, where: str) -> str:
    if not _NAME.fullmatch(name):
        _fail(where, f"{name!r} is not a name: letters, digits and _, no digit first")
    return name


def _texts(node: dict[str, Any], where: str) -> dict[str, Any]:
    """Documentation and aliases, which types and fields have alike."""
    result = {"doc": str(node["doc"])} if node.get("doc") is not None else {}
    aliases = node.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        _fail(where, "aliases must be a list of strings")
    for alias in aliases:
        for part in alias.split("."):
            _checked_name(part, where)
    return result | ({"aliases": aliases} if aliases else {})


def _enum(node: dict[str, Any], where: str) -> dict[str, Any]:
    symbols = node.get("symbols")
    if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
        _fail(where, "the symbols of an enum must be a list of strings")
    for symbol in symbols:
        _checked_name(symbol, where)
    if len(set(symbols)) < len(symbols):
        _fail(where, "a symbol stands twice")
    default = node.get("default")
    if default is not None and default not in symbols:
        _fail(where, f"the default {_short(default)} is not one of the symbols")
    return {"symbols": symbols} | ({} if default is None else {"default": default})


def _size(node: dict[str, Any], where: str) -> int:
    size = node.get("size")
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size < 2**31:
        _fail(where, "the size of a fixed must be a whole number from 0")
    return size


def _extra(node: dict[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Further properties (logicalType, connect.name, …), in the order of their names."""
    return {key: node[key] for key in sorted(node.keys() - set(known))}


def _fail(where: str, reason: str) -> NoReturn:
    raise InvalidSchemaError(f"{reason} (at {where})" if where else reason)


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."
