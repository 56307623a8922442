"""The schemas of an input: the columns of its rows, and which of them are its primary key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cdc_common.messages.avro.schemas import Named, Tree, definition, to_tree
from joinery.planning.errors import PlanError

_ENVELOPE = ("before", "after", "source", "op")
_SOURCE = ("row_sequence", "ts_us", "cause")


class InputSchema(NamedTuple):
    """The schemas of an input's topic."""

    # The topic.
    topic: str
    # The fields of the rows, by name, in the order of the schema. Types are trees.
    columns: Mapping[str, dict[str, Any]]
    # The names of the columns of the primary key, in the order of the key's schema.
    keys: tuple[str, ...]
    # The record of rows, as a tree.
    row: dict[str, Any]
    # The envelope, as a tree.
    envelope: dict[str, Any]
    # The definitions of the named types.
    named: Named
    # The columns that the catalogue marks as personal.
    pii: frozenset[str] = frozenset()
    # The owner that the catalogue shows; empty if there is none.
    owner: str = ""

    @classmethod
    def of(cls, topic: str, key: Any, value: Any, pii: frozenset[str] = frozenset(), owner: str = "") -> InputSchema:  # noqa: ANN401 - JSON
        """Read the schemas of a topic's keys and values, which are JSON. PlanError if they are not those of changes."""
        if key is None:
            raise PlanError(f"{topic} has no schema of keys: a join needs the primary key of each row")
        key_tree, _ = to_tree(key)
        envelope, named = to_tree(value)
        if not isinstance(key_tree, dict) or key_tree["type"] != "record":
            raise PlanError(f"the keys of {topic} are no records")
        fields = _fields(envelope)
        if not fields.keys() >= set(_ENVELOPE):
            raise PlanError(
                f"the values of {topic} are no change envelopes with {', '.join(_ENVELOPE)}: joins of other topics are "
                "not there yet"
            )
        source = definition(fields["source"]["type"], named)
        if missing := [name for name in _SOURCE if name not in _fields(source)]:
            raise PlanError(f"the envelopes of {topic} lack source.{missing[0]}, which orders the changes of a row")
        row = _row_of(topic, fields["after"]["type"], named)
        if _row_of(topic, fields["before"]["type"], named)["name"] != row["name"]:
            raise PlanError(f"before and after of {topic} are different records")
        columns = {field["name"]: field for field in row["fields"]}
        keys = tuple(field["name"] for field in key_tree["fields"])
        if unknown := [name for name in keys if name not in columns]:
            raise PlanError(f"the key of {topic} has {unknown[0]}, which its rows do not have")
        return cls(topic, columns, keys, row, envelope, named, pii, owner)


def _fields(tree: Tree) -> dict[str, dict[str, Any]]:
    if not isinstance(tree, dict) or tree["type"] != "record":
        return {}
    return {field["name"]: field for field in tree["fields"]}


def _row_of(topic: str, tree: Tree, named: Named) -> dict[str, Any]:
    """The record of an image, which is null or a row."""
    branches = [branch for branch in tree if branch != "null"] if isinstance(tree, list) else [tree]
    found = definition(branches[0], named) if len(branches) == 1 else {"type": "union"}
    if found["type"] != "record":
        raise PlanError(f"before and after of {topic} are not a record or null")
    return found
