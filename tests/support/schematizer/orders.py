"""Schemas of an order that clients register: one, a wider one that can read it, and one that cannot."""

from __future__ import annotations

from typing import Any

_FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
    {"name": "note", "type": ["null", "string"], "default": None},
]


def order(*more: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with these fields after its own."""
    return {"type": "record", "name": "Order", "namespace": "shop", "fields": [*_FIELDS, *more]}


ORDER = order()
WIDER = order({"name": "amount", "type": "int", "default": 1})
NARROWER = order({"name": "amount", "type": "int"})
