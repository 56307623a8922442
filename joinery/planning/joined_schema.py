"""The Avro schemas of joined rows: a key record, and Debezium's envelope."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cdc_common.messages.avro.names import namespace
from cdc_common.messages.avro.schemas import from_tree
from joinery.planning.errors import PlanError

if TYPE_CHECKING:
    from cdc_common.messages.avro.schemas import Named
    from joinery.planning.plan import JoinPlan

_SOURCE: tuple[dict[str, Any], ...] = (
    {"name": "version", "type": "string"},
    {"name": "connector", "type": "string"},
    {"name": "name", "type": "string", "doc": "The name of the join."},
    {"name": "ts_ms", "type": "long"},
    {"name": "ts_us", "type": "long", "doc": "The time of the write that is the cause (µs since 1970)."},
    {"name": "input", "type": "string", "doc": "The input that has changed."},
    {"name": "cause", "type": "string", "doc": "Why its row has changed."},
    {"name": "row_sequence", "type": "long", "doc": "Rises with each change of the joined row, with gaps."},
    {
        "name": "rows",
        "type": {"type": "array", "items": ["null", "long"]},
        "doc": "The row_sequence of each input's row, in the order of the join; null without a row.",
    },
)


def key_schema(plan: JoinPlan) -> dict[str, Any]:
    """The schema of the keys of joined rows, as JSON."""
    return _schema(plan, {"type": "record", "name": _name(plan, "Key"), "fields": plan.key_fields})


def value_schema(plan: JoinPlan) -> dict[str, Any]:
    """The schema of the changes of joined rows, as JSON."""
    row = {"type": "record", "name": _name(plan, "Value"), "fields": plan.row_fields}
    source = {"type": "record", "name": _name(plan, "Source"), "fields": list(_SOURCE)}
    fields: list[dict[str, Any]] = [
        {"name": "before", "type": ["null", row], "default": None},
        {"name": "after", "type": ["null", row], "default": None},
        {"name": "source", "type": source},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ]
    return _schema(plan, {"type": "record", "name": _name(plan, "Envelope"), "fields": fields})


def _name(plan: JoinPlan, record: str) -> str:
    return f"{namespace(str(plan.join.target))}.{record}"


def _schema(plan: JoinPlan, tree: dict[str, Any]) -> dict[str, Any]:
    """The schema of a tree, with the inputs' named types under their own names."""
    named = _named_types(plan)
    named |= {record["name"]: record for record in _records(tree)}
    made: dict[str, Any] = from_tree(tree, named)
    return made


def _records(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """The record and those directly within it."""
    inner = [branch for field in tree["fields"] for branch in _options(field["type"])]
    return [tree, *(found for found in inner if isinstance(found, dict) and found["type"] == "record")]


def _options(tree: Any) -> list[Any]:  # noqa: ANN401 - JSON
    return tree if isinstance(tree, list) else [tree]


def _named_types(plan: JoinPlan) -> Named:
    """The named types of all inputs. PlanError if two inputs have different types of one name."""
    found: Named = {}
    for given in plan.inputs:
        for name, tree in given.schema.named.items():
            if found.setdefault(name, tree) != tree and name not in _rows(plan):
                raise PlanError(f"{name} is another type in {given.schema.topic} than in the inputs before it")
    return found


def _rows(plan: JoinPlan) -> set[str]:
    """The names of the inputs' own records, which joined rows do not have."""
    return {record["name"] for given in plan.inputs for record in (given.schema.row, given.schema.envelope)}
