"""The former names of renamed fields: Avro's aliases, as metadata of Arrow's fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEY = b"aliases"


def aliases_of(field: pa.Field) -> list[str]:
    """The former names of a field, the best first."""
    found = (field.metadata or {}).get(_KEY, b"")
    return found.decode().split(",") if found else []


def with_aliases(schema: pa.Schema, tree: Any, named: Mapping[str, Any]) -> pa.Schema:  # noqa: ANN401 - JSON
    """The schema with the aliases of the fields in a tree of Avro (cdc_common.messages.avro.schemas), at each level."""
    return pa.schema(_fields(schema, tree, named))


def _fields(fields: Any, tree: Any, named: Mapping[str, Any]) -> list[pa.Field]:  # noqa: ANN401 - a schema or a struct
    known = {field["name"]: field for field in _resolved(tree, named)["fields"]}
    return [_field(field, known[field.name], named) for field in fields]


def _field(field: pa.Field, known: Any, named: Mapping[str, Any]) -> pa.Field:  # noqa: ANN401 - JSON
    made = field.with_type(_type(field.type, known["type"], named))
    aliases = known.get("aliases")
    return made.with_metadata({_KEY: ",".join(aliases).encode()}) if aliases else made


def _type(kind: pa.DataType, tree: Any, named: Mapping[str, Any]) -> pa.DataType:  # noqa: ANN401 - JSON
    tree = _resolved(tree, named)
    if pa.types.is_struct(kind):
        return pa.struct(_fields(kind, tree, named))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field, kind.item_field.with_type(_type(kind.item_type, tree["values"], named)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_type(kind.value_type, tree["items"], named)))
    return kind


def _resolved(tree: Any, named: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """The type of a tree: without the null of its union, and defined where the tree names it."""
    if isinstance(tree, list):
        others = [branch for branch in tree if branch != "null"]
        tree = others[0] if len(others) == 1 else tree
    return named.get(tree, tree) if isinstance(tree, str) else tree
