"""Decodes the messages that a publisher has sent."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from cassandra_storage.formats.rows.partition import PartitionUpdate
from cassandra_storage.formats.rows.partition_update import read_partition_update
from cassandra_storage.formats.rows.row import Cell
from cdc_common.messages import raw, tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra_storage.formats.rows.row import Row


LEADER_SECONDS = 30.0
AWAY = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
)


class Sent(NamedTuple):
    """A raw message with its update decoded by the schema that was sent for it; None for heartbeats, gaps and the end
    of all rows.
    """

    partition: int
    key: bytes | None
    message: raw.RawMessage
    update: PartitionUpdate | None


def int_value(number: int) -> bytes:
    return number.to_bytes(4, "big", signed=True)


def rows(sent: list[Sent]) -> list[Sent]:
    return [raw_message for raw_message in sent if raw_message.message.kind != "heartbeat"]


def at_least(count: int) -> Callable[[list[Sent]], bool]:
    return lambda sent: len(rows(sent)) >= count


def cell(row: Row, column: str) -> Cell:
    """The cell of a column that is not a collection."""
    data = row.columns[column]
    assert isinstance(data, Cell)
    return data


class SentSchemas:
    """The schemas that came with the messages."""

    def __init__(self, servers: str, topic: str) -> None:
        self._servers = servers
        self._topic = topic
        self._values: dict[bytes, bytes] = {}

    def decode(self, partition: int, key: bytes | None, value: bytes) -> Sent:
        message = raw.decode(value)
        if message.kind in {"heartbeat", "gap", "truncate", "truncated", "drop"}:
            return Sent(partition, key, message, None)
        if message.table_id + message.schema_digest not in self._values:
            self._read()
        table = tables.from_json(self._values[message.table_id + message.schema_digest])
        update, end = read_partition_update(message.update, 0, message.messaging_version, {message.table_id: table})
        assert end == len(message.update)
        assert key == update.partition_key
        return Sent(partition, key, message, update)

    def _read(self) -> None:
        """The schema is acknowledged before the first message that uses it: one read must do."""
        consumer = open_consumer(self._servers)
        try:
            place = TopicPartition(self._topic, 0, 0)
            end = _end_of(consumer, place)
            consumer.assign([place])
            while consumer.position([place])[0].offset < end:
                for message in consumer.consume(100, timeout=0.2):
                    key, value = message.key(), message.value()
                    if key is not None and value is not None:
                        self._values[key] = value
        finally:
            consumer.close()


def _end_of(consumer: Consumer, place: TopicPartition) -> int:
    """The offset of what comes next; a broker that was frozen finds its partitions again."""
    deadline = time.monotonic() + LEADER_SECONDS
    while True:
        try:
            # The client caches the answer of a broker without leaders until it asks again.
            consumer.list_topics(place.topic, timeout=LEADER_SECONDS)
            _, end = consumer.get_watermark_offsets(place)
        except KafkaException as error:
            if error.args[0].code() not in AWAY or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return int(end)


def open_consumer(servers: str) -> Consumer:
    return Consumer({"bootstrap.servers": servers, "group.id": "tests", "enable.auto.commit": False})
