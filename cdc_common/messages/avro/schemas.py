"""Avro schemas as trees in which each named type has its full name, and back to the schemas of a registry.

In a tree, `name` is a full name, there is no `namespace`, and a named type is either its definition or its full name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

Tree: TypeAlias = Any  # str, list or dict, as in JSON
Named: TypeAlias = dict[str, dict[str, Any]]

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAMED = frozenset({"record", "error", "enum", "fixed"})


def to_tree(schema: Tree) -> tuple[Tree, Named]:
    """The tree of a schema, and the definition of each named type. A registry has accepted the schema."""
    named: Named = {}
    return _to_tree(schema, "", named), named


def _to_tree(schema: Tree, namespace: str, named: Named) -> Tree:
    if isinstance(schema, str):
        return schema if schema in PRIMITIVES else _resolve(schema, namespace, named)
    if isinstance(schema, list):
        return [_to_tree(branch, namespace, named) for branch in schema]
    kind = schema["type"]
    if kind in _NAMED:
        return _named(schema, namespace, named)
    made = dict(schema)
    if kind == "array":
        made["items"] = _to_tree(schema["items"], namespace, named)
    elif kind == "map":
        made["values"] = _to_tree(schema["values"], namespace, named)
    elif kind not in PRIMITIVES:  # {"type": {"type": "int"}}, or the name of a type
        return _to_tree(kind, namespace, named)
    return made


def _named(schema: dict[str, Any], namespace: str, named: Named) -> dict[str, Any]:
    name = schema["name"]
    if "." not in name:
        space = schema.get("namespace", namespace)
        name = f"{space}.{name}" if space else name
    made = named[name] = {key: value for key, value in schema.items() if key != "namespace"}
    made["name"] = name
    inner = name.rpartition(".")[0]
    if "fields" in schema:
        made["fields"] = [{**field, "type": _to_tree(field["type"], inner, named)} for field in schema["fields"]]
    return made


def _resolve(name: str, namespace: str, named: Named) -> str:
    full = f"{namespace}.{name}" if namespace and "." not in name else name
    return full if full in named else name


def from_tree(tree: Tree, named: Named, rename: Callable[[str], str] = str) -> Tree:
    """The schema of a tree. A named type is defined where it comes first; `rename`: of full names."""
    return _from_tree(tree, named, rename, set())


def _from_tree(tree: Tree, named: Named, rename: Callable[[str], str], defined: set[str]) -> Tree:
    if isinstance(tree, list):
        return [_from_tree(branch, named, rename, defined) for branch in tree]
    if isinstance(tree, str):
        if tree in PRIMITIVES:
            return tree
        tree = named[tree]
    kind = tree["type"]
    if kind in _NAMED:
        return _definition(tree, named, rename, defined)
    made = dict(tree)
    for part in ("items", "values"):
        if part in tree:
            made[part] = _from_tree(tree[part], named, rename, defined)
    return made


def _definition(tree: dict[str, Any], named: Named, rename: Callable[[str], str], defined: set[str]) -> Tree:
    full = rename(tree["name"])
    if tree["name"] in defined:
        return full
    tree = named[tree["name"]]
    defined.add(tree["name"])
    namespace, _, name = full.rpartition(".")
    made = {"type": tree["type"], "name": name, **({"namespace": namespace} if namespace else {})}
    made |= {key: value for key, value in tree.items() if key not in ("type", "name", "fields")}
    if "fields" in tree:
        made["fields"] = [
            {**field, "type": _from_tree(field["type"], named, rename, defined)} for field in tree["fields"]
        ]
    return made


def definition(tree: Tree, named: Named) -> dict[str, Any]:
    """The dict of a tree that is no union: of a primitive too."""
    if isinstance(tree, str):
        return {"type": tree} if tree in PRIMITIVES else named[tree]
    found: dict[str, Any] = tree
    return found


def references(tree: Tree, name: str) -> int:
    """Return how often the tree names the type, including its definition, without looking into other references."""
    if isinstance(tree, str):
        return int(tree == name)
    if isinstance(tree, list):
        return sum(references(branch, name) for branch in tree)
    own = int(tree.get("name") == name and tree["type"] in _NAMED)
    parts = [tree[part] for part in ("items", "values") if part in tree]
    return own + sum(references(part, name) for part in [*parts, *(field["type"] for field in tree.get("fields", ()))])
