"""Types of columns: which are compared in a join key, and which may be null."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.messages.avro.schemas import definition, from_tree
from joinery.planning.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdc_common.messages.avro.schemas import Named, Tree

_COMPARED = ("int", "long", "string", "bytes", "boolean")
_NUMBERS = {("int", ""), ("long", "")}


def branches(tree: Tree) -> list[Tree]:
    """The types that values may have, without null."""
    return [branch for branch in tree if branch != "null"] if isinstance(tree, list) else [tree]


def is_nullable(tree: Tree) -> bool:
    return tree == "null" or (isinstance(tree, list) and "null" in tree)


def nullable(tree: Tree, column: str) -> Tree:
    """The type with null as its first branch. PlanError for a union of several types."""
    return ["null", single(tree, column)]


def single(tree: Tree, column: str) -> Tree:
    """The one type that values have that are not null. PlanError for a union of several types."""
    found = branches(tree)
    if len(found) != 1:
        raise PlanError(f"{column} is a union of several types, which a join does not take")
    return found[0]


def compared_type(columns: Sequence[tuple[str, Tree, Named]]) -> Tree:
    """The type of a join key's column: int and long become long. PlanError for types whose values are never equal.

    columns: name, type and definitions of each input's column. Equal values of these types have equal bytes.
    """
    (first, first_tree, first_named), *others = columns
    made = _compared(first, first_tree, first_named)
    for name, tree, named in others:
        other = _compared(name, tree, named)
        if other != made and {other, made} != _NUMBERS:
            raise PlanError(f"{first} ({_text(made)}) and {name} ({_text(other)}) are never equal")
        made = made if other == made else ("long", "")
    kind, logical = made
    return {"type": kind, "logicalType": logical} if logical else kind


def without_docs(tree: Tree, named: Named) -> Tree:
    """The type without what does not matter for the bytes of its values."""
    return _bare(from_tree(tree, named))


def _bare(tree: Tree) -> Tree:
    if isinstance(tree, list):
        return [_bare(branch) for branch in tree]
    if isinstance(tree, dict):
        kept = ("type", "name", "items", "values", "fields", "symbols", "size", "logicalType", "precision", "scale")
        return {key: _bare(tree[key]) for key in kept if key in tree}
    return tree


def _compared(name: str, tree: Tree, named: Named) -> tuple[str, str]:
    """The type and the logical type of a column of a join key."""
    found = definition(single(tree, name), named)
    kind, logical = found["type"], found.get("logicalType", "")
    if kind not in _COMPARED or logical == "decimal":
        raise PlanError(
            f"{name} is {logical or kind}: a join key is {', '.join(_COMPARED)}, because values of other types may be "
            "equal with different bytes"
        )
    return kind, logical


def _text(kind: tuple[str, str]) -> str:
    return f"{kind[1]} as {kind[0]}" if kind[1] else kind[0]
