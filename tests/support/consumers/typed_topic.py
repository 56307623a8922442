"""A change topic on a real broker, with its schemas in a registry: the messages of wide_table, or any others."""

from __future__ import annotations

import json
import math
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from fastavro import parse_schema, schemaless_reader
from fastavro.schema import expand_schema

from cdc_common.messages.wire import HEADER_SIZE
from tests.support.cdc_common.messages.from_avro import without_logical_types

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.support.consumers.messages import Encoded
    from tests.support.schematizer.registry_process import Registry

Rows = dict[str, Any]
"""The rows of a table by their keys as JSON: what a consumer that applies all messages has at the end."""


class TypedTopic(NamedTuple):
    """Where a consumer finds the messages of a table."""

    kafka: str
    registry: str
    name: str
    value_schema: str
    """The newest one."""

    def columns(self) -> list[dict[str, Any]]:
        """The fields of `after`, as Avro's JSON."""
        return row_fields(self.value_schema)


def row_fields(value_schema: str) -> list[dict[str, Any]]:
    """The fields of a row; each record is there whole, also where the schema only names it."""
    expanded: Any = expand_schema(json.loads(value_schema))
    fields: list[dict[str, Any]] = expanded["fields"][0]["type"][1]["fields"]
    return fields


def write_topic(kafka: str, registry: Registry, name: str, messages: list[Encoded]) -> TypedTopic:
    """Write the messages in one compressed transaction, as the materializer does: its end takes an offset."""
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([NewTopic(name, 1)])[name].result()
    producer = Producer({"bootstrap.servers": kafka, "transactional.id": name, "compression.type": "lz4"})
    producer.init_transactions()
    producer.begin_transaction()
    for message in messages:
        key = _with_id(message.key, _register(registry, f"{name}-key", message.key_schema))
        schema_id = _register(registry, f"{name}-value", message.value_schema)
        producer.produce(name, key=key, value=None if message.value is None else _with_id(message.value, schema_id))
    producer.commit_transaction()
    return TypedTopic(kafka, registry.url, name, messages[-1].value_schema)


def _register(registry: Registry, subject: str, schema: str) -> int:
    answer = registry.register(subject, json.loads(schema))
    assert answer.status == 200, answer.body
    found: int = answer.body["id"]
    return found


def _with_id(message: bytes, schema_id: int) -> bytes:
    return message[:1] + schema_id.to_bytes(4, "big") + message[HEADER_SIZE:]


def expected_rows(messages: Iterable[Encoded]) -> Rows:
    """The rows that the messages leave, by fastavro."""
    found: Rows = {}
    for message in messages:
        key = json.dumps(plain(_read(message.key_schema, message.key)))
        after = None if message.value is None else _read(message.value_schema, message.value)["after"]
        found.pop(key, None)
        if after is not None:
            found[key] = plain(after)
    return found


def _read(schema: str, message: bytes) -> Any:  # noqa: ANN401 - a record
    parsed = parse_schema(without_logical_types(json.loads(schema)))
    return schemaless_reader(BytesIO(message[HEADER_SIZE:]), parsed, None)


def plain(value: Any) -> Any:  # noqa: ANN401 - any value
    """The value as the clients print it in JSON: bytes as hexadecimal, NaN and the infinities as text."""
    match value:
        case dict():
            return {name: plain(item) for name, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case bytes():
            return f"0x{value.hex()}"
        case float() if not math.isfinite(value):
            return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[repr(value)]
    return value
