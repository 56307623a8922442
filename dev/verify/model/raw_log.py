"""The raw topics of a keyspace as they grow, and how far the materializer's group has come in them."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from cdc_common.messages.raw import RawMessage, decode
from cdc_common.messages.topics import raw_topic
from materializer.records import RawRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dev.local_stack.servers.addresses import Servers

GROUP = "cassandra-materializer"
BATCH = 5000
TOPIC_SECONDS = 60.0

Place = tuple[str, int]


class RawLog:
    """Everything in the raw topics of `tables`, from the beginning, in memory. Close it."""

    def __init__(self, servers: Servers, keyspace: str, tables: Iterable[str], group: str = GROUP) -> None:
        self.records: dict[Place, list[RawRecord]] = defaultdict(list)
        self._prefix, self._keyspace = servers.topic_prefix, keyspace
        self._topics = {table: raw_topic(self._prefix, keyspace, table) for table in tables}
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers.kafka,
                "group.id": group,
                "enable.auto.commit": False,
                "isolation.level": "read_uncommitted",  # positions as they are: a zombie's transaction may be open
                "topic.metadata.refresh.interval.ms": 2000,  # a broker that was waking up may have said: no leader
            }
        )
        self._producer = Producer({"bootstrap.servers": servers.kafka})
        self._places: dict[str, list[TopicPartition]] = {}

    def close(self) -> None:
        self._consumer.close()

    def open(self) -> None:
        """Waits until every table has its topic."""
        self._assign(self._topics)

    def open_tables(self, tables: Iterable[str]) -> None:
        """Those that were not followed before, too. Waits until they have topics."""
        more = {table: raw_topic(self._prefix, self._keyspace, table) for table in tables if table not in self._topics}
        self._topics |= more
        self._assign(more)

    def _assign(self, topics: Mapping[str, str]) -> None:
        deadline = time.monotonic() + TOPIC_SECONDS
        while True:
            found = self._consumer.list_topics(timeout=10).topics
            missing = [topic for topic in topics.values() if topic not in found]
            if not missing:
                break
            assert time.monotonic() < deadline, f"no topics {missing}"
            time.sleep(0.2)
        for table, topic in topics.items():
            self._places[table] = [TopicPartition(topic, at, OFFSET_BEGINNING) for at in found[topic].partitions]
        self._consumer.incremental_assign([place for table in topics for place in self._places[table]])

    def partitions(self, table: str) -> int:
        return len(self._places[table])

    def topic(self, table: str) -> str:
        return self._topics[table]

    def places(self) -> list[Place]:
        return [(place.topic, place.partition) for places in self._places.values() for place in places]

    def poll(self, seconds: float) -> None:
        """Take what has come; waits up to `seconds` for the first message."""
        for message in self._consumer.consume(BATCH, seconds):
            if message.error() is not None:
                raise KafkaException(message.error())
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            assert topic is not None
            assert partition is not None
            assert offset is not None
            key, value = message.key() or b"", message.value() or b""
            self.records[topic, partition].append(RawRecord(key, value, offset, message.timestamp()[1]))

    def send_again(self, places: Iterable[Place]) -> None:
        """Send a copy of the last message of each of these raw partitions."""
        for topic, partition in places:
            last = self.records[topic, partition][-1]
            self._producer.produce(topic, last.value, last.key or None, partition)
        assert not self._producer.flush(TOPIC_SECONDS)

    def count(self) -> int:
        """Messages that have come and are no heartbeats."""
        return sum(bool(record.key) for records in self.records.values() for record in records)

    def gaps(self) -> Iterator[tuple[Place, RawRecord]]:
        """The messages that stand for a mutation which the publisher could not decode."""
        for place, records in self.records.items():
            for record in records:
                if decode(record.value).kind == "gap":
                    yield place, record

    def folded(self) -> dict[Place, int]:
        """The group's committed offset of each raw partition: what is before it has come out."""
        asked = [TopicPartition(*place) for place in self.places()]
        return {(one.topic, one.partition): one.offset for one in self._consumer.committed(asked, timeout=10)}

    def of_key(self, table: str, key: bytes) -> Iterator[tuple[RawRecord, RawMessage]]:
        """The messages of one Cassandra partition, in the order in which they came."""
        for place in self._places[table]:
            for record in self.records[place.topic, place.partition]:
                if record.key == key:
                    yield record, decode(record.value)
