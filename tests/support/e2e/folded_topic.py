"""A raw topic folded and published in this process, without Spark: what comes out, decoded."""

from __future__ import annotations

import io
import json
import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, TopicPartition
from fastavro import parse_schema, schemaless_reader

from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.topics import raw_topic, tables_topic
from dev.local_stack.clients.change import Change
from materializer.planning.change_topics import ChangeTopics
from materializer.planning.plan import TopicPlan
from materializer.planning.table_schemas import TableSchemas
from materializer.records import RawRecord
from materializer.settings import MaterializerSettings
from materializer.worker.batch_plan import BatchPlan
from tests.support.e2e.kafka_topics import read_all
from tests.support.materializer.memory_registry import MemoryRegistry
from tests.support.materializer.memory_state import MemoryState
from tests.support.stream_runtime.sent import messages_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cdc_common.settings import Settings
    from materializer.processing.raw_processor import RawProcessor
    from stream_runtime.records import Message

MOST_SECONDS = 180.0


class FoldedTopic:
    """The raw topic of a table, from its beginning."""

    def __init__(self, settings: Settings, keyspace: str, table: str) -> None:
        self._settings = settings
        self._keyspace = keyspace
        self._table = table
        self._topic = raw_topic(settings.kafka.topic_prefix, keyspace, table)
        self._schemas = TableSchemas(settings.kafka.topic_prefix)
        self._registry = MemoryRegistry()
        self._change_topics = ChangeTopics(settings.kafka.topic_prefix, self._registry, lambda _topic: 1)
        self._states: dict[int, MemoryState] = {}
        self._partitions = settings.kafka.raw_partitions
        self._consumer = Consumer(
            {"bootstrap.servers": settings.kafka.bootstrap_servers, "group.id": "folded", "enable.auto.commit": False}
        )
        self._consumer.assign([TopicPartition(self._topic, number, 0) for number in range(self._partitions)])

    def close(self) -> None:
        self._consumer.close()

    def changes(self, is_enough: Callable[[list[Change]], bool]) -> list[Change]:
        """Return the changes that come until they are enough, without tombstones."""
        deadline = time.monotonic() + MOST_SECONDS
        found: list[Change] = []
        while not is_enough(found):
            assert time.monotonic() < deadline, [(change.key, change.value) for change in found]
            records: dict[int, list[RawRecord]] = {}
            for message in self._consumer.consume(1000, 0.5):
                assert message.error() is None
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                key, value = message.key() or b"", message.value() or b""
                record = RawRecord(bytes(key), bytes(value), offset, message.timestamp()[1])
                records.setdefault(partition, []).append(record)
            if records:
                processor = self._processor()
                for partition, batch in records.items():
                    found += self._fold(processor, partition, batch)
        return found

    def _processor(self) -> RawProcessor:
        kafka = self._settings.kafka
        self._schemas.add(read_all(kafka.bootstrap_servers, tables_topic(kafka.topic_prefix)))
        schemas = self._schemas.for_table((self._keyspace, self._table))
        plan = TopicPlan(self._partitions, schemas, self._change_topics.find_or_create(schemas, EXACT), forms=EXACT)
        return BatchPlan({self._topic: plan}, kafka, MaterializerSettings()).processor(self._topic)

    def _fold(self, processor: RawProcessor, partition: int, records: list[RawRecord]) -> Iterator[Change]:
        state = self._states.setdefault(partition, MemoryState())
        while records:
            result = processor.fold(state, records)
            state.apply(result.writes)
            records = records[len(records) - result.left :]
            for message in messages_of(processor.change_messages(result)):
                if message.value is not None:
                    yield self._change(message)

    def _change(self, message: Message) -> Change:
        key, value = self._decode(message.key), self._decode(message.value or b"")
        return Change(self._keyspace, message.topic.rpartition(".")[2], message.partition, 0, key, value, time.time())

    def _decode(self, data: bytes) -> dict[str, Any]:
        schema_id = int.from_bytes(data[1:5], "big")
        text = next(text for (_, text), known in self._registry.schemas.items() if known == schema_id)
        read = schemaless_reader(io.BytesIO(data[5:]), parse_schema(json.loads(text)), None)
        assert isinstance(read, dict)
        return read
