"""A change envelope as the materializer writes it, of a table of seven columns: what benchmarks of Avro read."""

from __future__ import annotations

from typing import Any

from cdc_common.messages.envelope import _source_schema

_NAMESPACE = "cdc.shop.orders"
_ROW = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "email", "type": ["null", "string"], "default": None},
        {"name": "city", "type": ["null", "string"], "default": None},
        {"name": "status", "type": ["null", "int"], "default": None},
        {"name": "bits", "type": "int"},
        {"name": "total", "type": "double"},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
    ],
}
ENVELOPE: dict[str, Any] = {
    "type": "record",
    "name": "Envelope",
    "namespace": _NAMESPACE,
    "fields": [
        {"name": "before", "type": ["null", _ROW], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": _source_schema(_NAMESPACE)},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ],
}
_ORDER = {
    "id": 1234567,
    "email": "ada@example.org",
    "city": "London",
    "status": 3,
    "bits": 5,
    "total": 19.5,
    "at": 1_795_000_000_000,
}
_SOURCE = {
    "version": "0.1.0",
    "connector": "cassandra",
    "name": "cdc",
    "ts_ms": 1_795_000_000_000,
    "ts_us": 1_795_000_000_000_000,
    "snapshot": "false",
    "cluster": "Test Cluster",
    "keyspace": "shop",
    "table": "orders",
    "host": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
    "file": "CommitLog-7-1795000000000.log",
    "pos": 1_234_567,
    "cause": "write",
    "row_sequence": 17,
    "empty": [],
    "unreadable": [],
    "incomplete": False,
    "left_out": [],
}


def envelope(*, with_before: bool) -> dict[str, Any]:
    """An insert, or an update."""
    before = _ORDER if with_before else None
    op = "u" if with_before else "c"
    return {"before": before, "after": _ORDER, "source": _SOURCE, "op": op, "ts_ms": 1_795_000_000_100}
