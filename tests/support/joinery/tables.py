"""Tables of a shop, as change topics have them, and joins of them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import fastavro

from joinery.definition import Join
from joinery.planning.input_schema import InputSchema
from joinery.planning.plan import JoinPlan, plan_join

if TYPE_CHECKING:
    from collections.abc import Mapping

_SOURCE_FIELDS = [
    {"name": "ts_us", "type": "long"},
    {"name": "cause", "type": "string"},
    {"name": "row_sequence", "type": "long"},
    {"name": "left_out", "type": {"type": "array", "items": "string"}, "default": []},
]


def key_schema(table: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a table's keys."""
    return _record(table, "Key", columns)


def value_schema(table: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a table's changes."""
    fields = [
        {"name": "before", "type": ["null", _record(table, "Value", columns)], "default": None},
        {"name": "after", "type": ["null", f"shop.{table}.Value"], "default": None},
        {"name": "source", "type": {"type": "record", "name": "Source", "fields": _SOURCE_FIELDS}},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ]
    return {"type": "record", "name": "Envelope", "namespace": f"shop.{table}", "fields": fields}


def _record(table: str, name: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    fields = [
        {"name": column, "type": tree, **({"default": None} if isinstance(tree, list) else {})}
        for column, tree in columns.items()
    ]
    return {"type": "record", "name": name, "namespace": f"shop.{table}", "fields": fields}


ORDERS = {"id": "int", "user_id": ["null", "int"], "total": ["null", "double"], "note": ["null", "string"]}
USERS = {"id": "long", "name": ["null", "string"], "city": ["null", "string"]}
TABLES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {"orders": (ORDERS, ("id",)), "users": (USERS, ("id",))}
"""The columns and the primary key of each table."""


def schema_of(table: str, pii: frozenset[str] = frozenset()) -> InputSchema:
    columns, keys = TABLES[table]
    key = key_schema(table, {name: columns[name] for name in keys})
    return InputSchema.of(f"cdc.shop.{table}", key, value_schema(table, columns), pii)


def join_of(**changes: Any) -> Join:  # noqa: ANN401 - of any field
    """The join of orders with their users, with some of its tables changed."""
    tables = {
        "name": "orders",
        "input": {
            "o": {"namespace": "shop", "source": "orders"},
            "u": {"namespace": "shop", "source": "users"},
        },
        "on": ["o.user_id = u.id"],
        "select": ["o.id as order_id", "o.total", "u.name as user_name"],
        "target": {"namespace": "shop", "source": "orders_of_users"},
    }
    return Join.model_validate(tables | changes)


def plan_of(**changes: Any) -> JoinPlan:  # noqa: ANN401 - of any field
    join = join_of(**changes)
    return plan_join(join, {name: schema_of(given.source) for name, given in join.input.items()})


def encode(schema: Any, value: Any) -> bytes:  # noqa: ANN401 - of any schema
    data = io.BytesIO()
    fastavro.schemaless_writer(data, fastavro.parse_schema(schema), value)
    return data.getvalue()


def decode(schema: Any, data: bytes) -> Any:  # noqa: ANN401 - of any schema
    stream = io.BytesIO(data)
    found = fastavro.schemaless_reader(stream, fastavro.parse_schema(schema), None)
    assert not stream.read()
    return found


def envelope(before: Any, after: Any, sequence: int = 1, ts_us: int = 5_000_000) -> dict[str, Any]:  # noqa: ANN401 - rows
    """The value of a change, as fastavro takes it."""
    op = "u" if before and after else "d" if before else "c"
    source = {"ts_us": ts_us, "cause": "write", "row_sequence": sequence, "left_out": []}
    return {"before": before, "after": after, "source": source, "op": op, "ts_ms": None}
