"""Reads change topics as any client would: confluent-kafka and its AvroDeserializer, nothing of the programs'.

This is the one module of local_stack that imports confluent_kafka.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from dev.local_stack.clients.change import Change
from dev.local_stack.clients.history import changes_nothing

if TYPE_CHECKING:
    from types import TracebackType

    from dev.local_stack.clients.change import Record
    from dev.local_stack.servers.addresses import Servers

Wanted: TypeAlias = Callable[[str, str], bool]
ColumnNames: TypeAlias = Callable[[str, str], Collection[str]]

LOOK_FOR_TOPICS_SECONDS = 0.5
BATCH = 1000


class ChangeReader:
    """Follows the change topics of the tables that `wanted(keyspace, table)` accepts, those made later too.

    Reads committed messages only, from the beginning or (`new_only`) from the end of the topics that are there at the
    start. With `columns` each message is read into the newest version of its topic's schema that has these columns of
    the table, as Avro resolves them; without, by the schema that it was written with. A registry gives a schema one
    version only: the newest version may lack dropped columns that were added again. With `cql_names` columns have the
    names that they have in CQL, where Avro allows others only.
    Commits nothing. Raises KafkaException and SerializationError.
    """

    def __init__(  # noqa: PLR0913 - where to read from, and how
        self,
        bootstrap: str,
        registry_url: str,
        prefix: str,
        wanted: Wanted,
        *,
        new_only: bool = False,
        columns: ColumnNames | None = None,
        cql_names: bool = False,
    ) -> None:
        self._columns = columns
        self._has_cql_names = cql_names
        self._cql_names: dict[str, dict[str, str]] = {}  # by schema
        self._prefix = prefix
        self._wanted = wanted
        self._assigned: set[str] = set()
        self._reached: dict[tuple[str, int], int] = {}  # offsets before which all has been read
        self._next_look = 0.0
        self._start = OFFSET_END if new_only else OFFSET_BEGINNING
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "change-reader",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "topic.metadata.refresh.interval.ms": 2000,  # a broker that was waking up may have said: no leader
                "allow.auto.create.topics": False,
            }
        )
        self._registry = SchemaRegistryClient({"url": registry_url})
        self._decode: AvroDeserializer = AvroDeserializer(self._registry)
        self._value_decoders: dict[str, AvroDeserializer] = {}
        self._reader_schemas: dict[str, str] = {}
        self._look_for_topics()
        self._start = OFFSET_BEGINNING

    @classmethod
    def of_keyspace(cls, servers: Servers, keyspace: str, columns: ColumnNames | None = None) -> Self:
        """Reads the changes of one keyspace's tables, from the beginning."""

        def wanted(of: str, _table: str) -> bool:
            return of == keyspace

        return cls(servers.kafka, servers.registry, servers.topic_prefix, wanted, columns=columns)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._consumer.close()

    def poll(self, seconds: float) -> list[Change]:
        """Read messages that have come; waits up to `seconds` for the first message and for none after it."""
        self._look_for_topics()
        first = self._consumer.poll(seconds)
        if first is None:
            return []
        messages = [first, *self._consumer.consume(BATCH, 0)]
        seen = time.time()
        for message in messages:
            self.record_progress(message)
        return [self._change(message, seen) for message in messages if _is_good(message)]

    def read_all(self) -> list[Change]:
        """All that is committed by now and has not been read; waits until it has come."""
        return list(self.each_change())

    def each_change(self) -> Iterator[Change]:
        """Yield the changes that `read_all` returns, one by one, for more than memory should hold at once."""
        self._next_look = 0.0
        self._value_decoders.clear()
        self._look_for_topics()
        ends = {
            (one.topic, one.partition): self._consumer.get_watermark_offsets(one, timeout=10)[1]
            for one in self._consumer.assignment()
        }
        while any(self._reached.get(place, 0) < end for place, end in ends.items()):
            yield from self.poll(0.1)

    def record_progress(self, message: Message) -> None:
        """Transactions end in records that no consumer sees: only the end of a partition tells that they are past."""
        topic, partition, offset, error = message.topic(), message.partition(), message.offset(), message.error()
        if topic is not None and partition is not None and offset is not None:
            if error is None:
                self._reached[topic, partition] = offset + 1
            elif error.name() == "_PARTITION_EOF":
                self._reached[topic, partition] = offset

    def _look_for_topics(self) -> None:
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + LOOK_FOR_TOPICS_SECONDS
        topics = self._consumer.list_topics(timeout=10).topics
        fresh = {name for name in topics if name not in self._assigned and self._is_wanted(name)}
        partitions = [
            TopicPartition(name, partition, self._start)
            for name in sorted(fresh)
            for partition in topics[name].partitions
        ]
        if partitions:
            self._consumer.incremental_assign(partitions)
            self._assigned |= fresh

    def _is_wanted(self, topic: str) -> bool:
        for keyspace, table in self._names(topic):
            return self._wanted(keyspace, table)
        return False

    def _names(self, topic: str) -> Iterator[tuple[str, str]]:
        """(keyspace, table) of a change topic; raw topics have one part more, the topic of schemas one less."""
        parts = topic.removeprefix(self._prefix + ".").split(".")
        if topic.startswith(self._prefix + ".") and len(parts) == 2:
            yield parts[0], parts[1]

    def _change(self, message: Message, seen: float) -> Change:
        topic = message.topic()
        partition, offset = message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        [(keyspace, table)] = self._names(topic)
        key: Any = self._decode(message.key(), SerializationContext(topic, MessageField.KEY))
        context = SerializationContext(topic, MessageField.VALUE)
        value: Any = self._value_decoder(topic)(message.value(), context)
        as_written: Any = None
        if self._columns is not None and value is not None and value["op"] == "u" and changes_nothing(value):
            as_written = self._decode(message.value(), context)
        if self._has_cql_names:
            key = self._renamed(key, self._schema_of(message.key()))
            if value is not None:
                schema = self._reader_schemas.get(topic) or self._schema_of(message.value())
                value |= {which: self._renamed(value[which], schema) for which in ("before", "after")}
        return Change(keyspace, table, partition, offset, key, value, seen, as_written)

    def _schema_of(self, data: bytes | str | None) -> str:
        """The schema that a key or value was written with, whose id is in its first bytes."""
        assert isinstance(data, bytes)
        return self._registry.get_schema(int.from_bytes(data[1:5], "big")).schema_str or ""

    def _renamed(self, row: Record | None, schema: str) -> Record | None:
        if schema not in self._cql_names:
            self._cql_names[schema] = {field["name"]: _cql_name(field) for field in _fields_of_row(schema)}
        names = self._cql_names[schema]
        return None if row is None else {names.get(name, name): value for name, value in row.items()}

    def _value_decoder(self, topic: str) -> AvroDeserializer:
        if self._columns is None:
            return self._decode
        if topic not in self._value_decoders:
            [(keyspace, table)] = self._names(topic)
            schema = self._find_schema(f"{topic}-value", set(self._columns(keyspace, table)))
            self._value_decoders[topic] = AvroDeserializer(self._registry, schema)
            self._reader_schemas[topic] = schema
        decoder: AvroDeserializer = self._value_decoders[topic]
        return decoder

    def _find_schema(self, subject: str, names: set[str]) -> str:
        """The newest version whose rows have these fields, otherwise the newest one."""
        schemas = [
            self._registry.get_version(subject, version).schema.schema_str or ""
            for version in self._registry.get_versions(subject)
        ]
        return next((schema for schema in reversed(schemas) if _row_fields(schema) == names), schemas[-1])


def _row_fields(schema: str) -> set[str]:
    """The names in CQL of the columns in the record of an envelope's first image."""
    return {_cql_name(field) for field in _fields_of_row(schema)}


def _fields_of_row(schema: str) -> list[Record]:
    """The fields of a key, or of the record of an envelope's first image."""
    fields: list[Record] = json.loads(schema)["fields"]
    types = (field["type"] for field in fields if field["name"] in ("before", "after"))
    records = (record for found in types for record in found if isinstance(record, dict))
    row = next(records, None)
    return fields if row is None else row["fields"]


def _cql_name(field: Record) -> str:
    name = field.get("cqlName", field["name"])
    assert isinstance(name, str)
    return name


def _is_good(message: Message) -> bool:
    """Raises KafkaException for an error that retries do not solve."""
    error = message.error()
    if error is None:
        return True
    if error.retriable() or error.name() in {
        "UNKNOWN_TOPIC_OR_PART",
        "_UNKNOWN_TOPIC",
        "_TRANSPORT",
        "_ALL_BROKERS_DOWN",
        "_PARTITION_EOF",
    }:
        return False
    raise KafkaException(error)


def partition_count(bootstrap: str, topic: str) -> int:
    """Partitions of a topic; 0 if it is not there."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "change-reader", "allow.auto.create.topics": False}
    )
    try:
        found = consumer.list_topics(timeout=10).topics.get(topic)
        return len(found.partitions) if found else 0
    finally:
        consumer.close()
