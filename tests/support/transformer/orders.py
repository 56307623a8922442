"""Change envelopes of a table of orders, and Avro by fastavro."""

from __future__ import annotations

import copy
import io
from typing import Any

import fastavro

TOPIC = "cdc.shop.orders"
KEY = {"type": "record", "name": "Key", "namespace": TOPIC, "fields": [{"name": "id", "type": "long"}]}
ADDRESS = {"type": "record", "name": "address", "fields": [{"name": "city", "type": "string"}]}
ROW: dict[str, Any] = {
    "type": "record",
    "name": "Value",
    "doc": "An order.",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "email", "type": ["null", "string"], "default": None},
        {"name": "home", "type": ["null", ADDRESS], "default": None},
        {"name": "work", "type": ["null", "address"], "default": None},
        {"name": "status", "type": ["null", {"type": "int", "cqlType": "smallint"}], "default": None},
        {"name": "bits", "type": "int"},
        {"name": "total", "type": "double", "doc": "In euros."},
    ],
}
ENVELOPE: dict[str, Any] = {
    "type": "record",
    "name": "Envelope",
    "namespace": TOPIC,
    "fields": [
        {"name": "before", "type": ["null", ROW], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {
            "name": "source",
            "type": {"type": "record", "name": "Source", "fields": [{"name": "file", "type": "string"}]},
        },
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ],
}
ORDER = {
    "id": 7,
    "email": "ada@example.org",
    "home": {"city": "Turin"},
    "work": {"city": "London"},
    "status": 1,
    "bits": 5,
    "total": 1.5,
}


def encode(schema: Any, value: Any) -> bytes:  # noqa: ANN401 - what fastavro takes
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), value)
    return file.getvalue()


def decode(schema: Any, data: bytes) -> Any:  # noqa: ANN401 - as above
    return fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(schema), None)


def with_column(name: str, *, instead: str = "") -> Any:  # noqa: ANN401 - JSON
    """The envelope with one more column, or another name of one."""
    made = copy.deepcopy(ENVELOPE)
    fields = made["fields"][0]["type"][1]["fields"]
    if instead:
        next(field for field in fields if field["name"] == instead)["name"] = name
    else:
        fields.append({"name": name, "type": ["null", "string"], "default": None})
    return made


def envelope(before: object, after: object, op: str) -> dict[str, object]:
    return {"before": before, "after": after, "source": {"file": "CommitLog"}, "op": op, "ts_ms": 12}
