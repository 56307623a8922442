"""A number for the part of a join's definition that states and messages of the internal topic depend on."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from joinery.planning.column_types import without_docs

if TYPE_CHECKING:
    from joinery.planning.plan import InputPlan, JoinPlan, Target

_BYTES = 3  # it fits beside the flags of a message


def digest_of(plan: JoinPlan) -> int:
    """The number of a plan, never 0. It stays while joined rows are made of the same columns, types and filters."""
    content = json.dumps([_input(given) for given in plan.inputs], sort_keys=True)
    return int.from_bytes(sha256(content.encode()).digest()[:_BYTES], "big") or 1


def _input(given: InputPlan) -> list[Any]:
    filters = [
        [found.column, found.kind, found.passes_null, [list(map(_text, ends)) for ends in found.ranges]]
        for found in given.filters
    ]
    parts = [[_column(target, given) for target in targets] for targets in (given.join, given.ident, given.columns)]
    return [given.schema.topic, given.is_optional, parts, filters]


def _column(target: Target, given: InputPlan) -> list[Any]:
    tree = json.dumps(without_docs(target.field["type"], given.schema.named), sort_keys=True)
    return [target.column, target.field["name"], tree.replace('"int"', '"long"')]  # their values have the same bytes


def _text(end: int | bytes | None) -> str:
    return end.hex() if isinstance(end, bytes) else str(end)
