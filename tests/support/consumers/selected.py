"""Tables that SELECT and consumers are compared on: written in bytes, one in the default forms and one in the exact."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.request import urlopen

from confluent_kafka import Consumer, KafkaError, TopicPartition

from cassandra_storage.formats.types.cql_types import parse_type, type_text
from cassandra_storage.formats.types.marshal import CqlType, ListType, MapType, NativeType, SetType, UserType
from cdc_common.messages.topics import change_topic
from cdc_common.messages.wire import HEADER_SIZE
from materializer.rows.shown_forms import value_form
from tests.support.cdc_common.messages.from_avro import serialized
from tests.support.consumers.messages import Encoded
from tests.support.consumers.typed_topic import TypedTopic, row_fields
from tests.support.consumers.typed_values import KEYSPACE, frozen, number, sized
from tests.support.consumers.wide_table import NAMES, ROWS

if TYPE_CHECKING:
    from cdc_common.messages.changes import ColumnImage
    from dev.local_stack.servers.addresses import Servers
    from tests.support.consumers.typed_topic import Rows
    from tests.support.e2e.raw_rows import RawRows

SECONDS = 180.0
TEXTS = ("text", "ascii", "blob")
NEVER_EMPTY = ("tinyint", "smallint", "date", "time", "duration")
Selected = dict[str, dict[str, bytes | None]]
"""Rows in bytes, by their keys as JSON."""


class SelectedTable(NamedTuple):
    name: str
    columns: dict[str, CqlType]
    key: tuple[str, ...] = ("id",)
    """Of ints."""

    def select(self, rows: RawRows) -> Selected:
        """Each value in the one form of all that are shown alike; an empty value is null where Avro has none."""
        found: Selected = {}
        for row in rows.select(self.name):
            values = {
                name: None if value is None else int.from_bytes(value, "big")
                for name, value in row.items()
                if name in self.key
            }
            found[json.dumps({name: values[name] for name in self.key})] = {
                name: shown(of, row[name]) for name, of in self.columns.items()
            }
        return found

    def in_bytes(self, topic: TypedTopic, rows: Rows) -> Selected:
        """A consumer's rows as SELECT gives them."""
        schemas = {field.get("cqlName", field["name"]): field for field in topic.columns()}
        return {
            key: {name: self._value(of, schemas[name], row) for name, of in self.columns.items()}
            for key, row in rows.items()
        }

    def _value(self, of: CqlType, field: dict[str, Any], row: dict[str, Any]) -> bytes | None:
        value = as_read(field["type"], row.get(field["name"]))  # a row of before an ALTER has no new column
        return None if value is None else shown(of, serialized(whole_type(of), value))


def _int(value: bytes | None) -> int | None:
    return None if value is None else int.from_bytes(value, "big", signed=True)


def as_read(schema: Any, value: Any) -> Any:  # noqa: ANN401, PLR0911 - Avro's JSON, any value; one for each kind
    """The value that was printed in JSON, as an Avro reader gives it."""
    if value is None:
        return None
    if isinstance(schema, list):
        return as_read(schema[1], value)
    kind = schema if isinstance(schema, str) else schema["type"]
    match kind:
        case "bytes":
            return bytes.fromhex(value.removeprefix("0x"))
        case "float" | "double":
            return float(value)
        case "array":
            return [as_read(schema["items"], item) for item in value]
        case "map":
            return {name: as_read(schema["values"], item) for name, item in value.items()}
        case "record":
            return {field["name"]: as_read(field["type"], value[field["name"]]) for field in schema["fields"]}
    return value


def whole_type(of: CqlType) -> CqlType:
    """SELECT gives a collection in one value."""
    return replace(of, is_multi_cell=False) if isinstance(of, ListType | SetType | MapType | UserType) else of


def shown(of: CqlType, value: bytes | None) -> bytes | None:
    if value == b"" and not (isinstance(of, NativeType) and of.name in TEXTS):
        return None
    form = value_form(whole_type(of))
    return value if value is None or form is None else form(value)


def whole_value(of: CqlType, image: ColumnImage) -> bytes | None:
    """The bytes of one value, which cells are bound as."""
    if image is None or isinstance(image, bytes):
        return image
    match of:
        case ListType():
            return frozen(*(value for _, value in image))
        case SetType():
            return frozen(*(path for path, _ in image))
        case MapType():
            return frozen(*(part for cell in image for part in cell), per=2)
    assert isinstance(of, UserType)
    fields = {int.from_bytes(path, "big"): value for path, value in image}
    return b"".join(
        number(-1, 4) if (value := fields.get(at)) is None else sized(value) for at in range(len(of.field_types))
    )


ADDED = parse_type("map<text, int>", KEYSPACE, {})
EVERY_TYPE = {"id": parse_type("int", KEYSPACE, {}), **{name: of.type for name, of in NAMES.items()}}


def every_type(name: str) -> SelectedTable:
    return SelectedTable(name, {**EVERY_TYPE, "added": ADDED})


def write_every_type(rows: RawRows, name: str) -> int:
    """Rows of each value, of nulls, of empty values, one that becomes null, one deleted, an ALTER and a row after it.

    Returns how many changes that is.
    """
    columns = ", ".join(f"{column} {type_text(of)}" for column, of in EVERY_TYPE.items())
    rows.session.execute(f"CREATE TABLE {name} ({columns}, PRIMARY KEY (id)) WITH cdc = true")
    for at in range(ROWS):
        rows.insert(name, {"id": number(at, 4), **_values(at)})
    rows.insert(name, {"id": number(ROWS, 4)})
    rows.insert(name, {"id": number(ROWS + 1, 4), **_empty()})
    for at in (ROWS + 2, ROWS + 3):
        rows.insert(name, {"id": number(at, 4), **_values(0)})
    rows.session.execute(f"DELETE {', '.join(NAMES)} FROM {name} WHERE id = {ROWS + 2}")
    rows.session.execute(f"DELETE FROM {name} WHERE id = {ROWS + 3}")
    rows.session.execute(f"ALTER TABLE {name} ADD added map<text, int>")
    rows.insert(name, {"id": number(ROWS + 4, 4), **_values(1), "added": frozen(b"a", number(1, 4), per=2)})
    rows.session.execute(f"UPDATE {name} SET added['b'] = 2 WHERE id = 0")
    return ROWS + 8


def _values(at: int) -> dict[str, bytes]:
    found = {name: whole_value(of.type, of.values[at % len(of.values)][0]) for name, of in NAMES.items()}
    return {name: value for name, value in found.items() if value is not None}


def _empty() -> dict[str, bytes]:
    return {
        name: b"" for name, of in NAMES.items() if isinstance(of.type, NativeType) and of.type.name not in NEVER_EMPTY
    }


def read_topic(servers: Servers, topic: str, changes: int) -> list[Encoded]:
    """All messages of a topic, once it has so many changes."""
    deadline = time.monotonic() + SECONDS
    while len(found := _read_to_end(servers, topic)) - sum(message.value is None for message in found) < changes:
        assert time.monotonic() < deadline, f"{topic}: {len(found)} messages have come"
        time.sleep(1.0)
    return found


def _read_to_end(servers: Servers, topic: str) -> list[Encoded]:
    settings = {"bootstrap.servers": servers.kafka, "group.id": "tests", "enable.auto.commit": False}
    consumer = Consumer(settings | {"isolation.level": "read_committed", "enable.partition.eof": True})
    schemas: dict[int, str] = {}

    def schema_of(message: bytes) -> str:
        number = int.from_bytes(message[1:HEADER_SIZE], "big")
        if number not in schemas:
            with urlopen(f"{servers.registry}/schemas/ids/{number}") as answer:  # noqa: S310 - our own http address
                schemas[number] = json.load(answer)["schema"]
        return schemas[number]

    try:
        about = consumer.list_topics(timeout=10).topics.get(topic)
        left = set(about.partitions) if about is not None else set()
        consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
        found: list[Encoded] = []
        while left:
            for message in consumer.consume(500, 1.0):
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    left.discard(message.partition())
                    continue
                key, value = message.key(), message.value()
                assert key is not None
                found.append(Encoded(schema_of(key), key, "" if value is None else schema_of(value), value))
    finally:
        consumer.close()
    return found


def topic_of(servers: Servers, keyspace: str, table: str, changes: int) -> TypedTopic:
    """A table's change topic, once it has so many changes."""
    name = change_topic(servers.topic_prefix, keyspace, table)
    messages = read_topic(servers, name, changes)
    schemas = [message.value_schema for message in messages if message.value is not None]
    newest = max(schemas, key=lambda schema: len(row_fields(schema)))  # columns are only added
    return TypedTopic(servers.kafka, servers.registry, name, newest)
