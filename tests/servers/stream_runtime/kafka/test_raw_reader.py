"""A worker's reader with many raw partitions: idle ones have a consumer of their own."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_common.settings import KafkaSettings
from materializer.records import RawPartition
from stream_runtime.kafka import RawReader, ReadBudget, raw_reader

if TYPE_CHECKING:
    from dev.local_stack.servers.kafka import KafkaBroker

COUNT, MOST_BUSY = 12, 3
BUDGET = ReadBudget(1000, 1_000_000)
SECONDS = 60.0


@pytest.fixture
def partitions(kafka: KafkaBroker, topic_prefix: str) -> list[RawPartition]:
    topic = f"{topic_prefix}.raw.ks.t"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic(topic, COUNT, 1)])[topic].result()
    return [RawPartition(topic, number) for number in range(COUNT)]


class Reading:
    """Sends messages, and reads them: the offsets and the values of each raw partition."""

    def __init__(self, kafka: KafkaBroker, partitions: list[RawPartition]) -> None:
        self.producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0})
        self.reader = RawReader(KafkaSettings(bootstrap_servers=kafka.bootstrap_servers), "g", 50)
        self.sent: dict[RawPartition, list[bytes]] = {partition: [] for partition in partitions}
        self.found: dict[RawPartition, list[tuple[int, bytes]]] = {partition: [] for partition in partitions}

    def send(self, partition: RawPartition, value: bytes) -> None:
        self.sent[partition].append(value)
        self.producer.produce(partition.topic, value, partition=partition.partition)
        self.producer.flush()

    def read(self, seconds: float) -> None:
        read = self.reader.read(BUDGET, seconds)
        assert (read.lost, read.errors) == (set(), {})
        for partition, records in read.records.items():
            self.found[partition] += [(record.offset, record.value) for record in records]
            assert self.reader.next_offset(partition) == self.found[partition][-1][0] + 1

    @property
    def expected(self) -> dict[RawPartition, list[tuple[int, bytes]]]:
        return {partition: list(enumerate(values)) for partition, values in self.sent.items()}

    def read_all(self) -> None:
        deadline = time.monotonic() + SECONDS
        while self.found != self.expected:
            assert time.monotonic() < deadline, (self.found, self.expected)
            self.read(0.05)


@pytest.mark.servers
def test_each_message_is_read_once_and_in_order_whichever_consumer_has_its_partition(
    kafka: KafkaBroker, partitions: list[RawPartition], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_reader, "MOST_BUSY", MOST_BUSY)
    monkeypatch.setattr(raw_reader, "_IDLE_SECONDS", 0.2)
    rng = random.Random(7)
    reading = Reading(kafka, partitions)
    reading.reader.add(dict.fromkeys(partitions[:MOST_BUSY], 0))
    reading.reader.add(dict.fromkeys(partitions[MOST_BUSY:], 0))
    assert reading.reader._idle == set(partitions[MOST_BUSY:])
    moves = set()
    for number in range(150):
        for _ in range(rng.randrange(4)):
            reading.send(rng.choice(partitions), b"%d" % number)
        reading.read(rng.choice([0.0, 0.02, 0.1]))
        moves.add(frozenset(reading.reader._idle))
        assert reading.reader._idle | reading.reader._busy.keys() == set(partitions)
    reading.read_all()
    assert len(moves) > 5
    reading.reader.close()


@pytest.mark.servers
def test_partitions_of_both_consumers_can_be_left_and_taken_again(
    kafka: KafkaBroker, partitions: list[RawPartition], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_reader, "MOST_BUSY", MOST_BUSY)
    reading = Reading(kafka, partitions)
    reading.reader.add_whole(partitions[0])
    reading.reader.add(dict.fromkeys(partitions[1:3], 0))
    reading.reader.add(dict.fromkeys(partitions[3:], 0))
    for partition in partitions:
        reading.send(partition, b"a")
    reading.read_all()
    reading.reader.remove([partitions[1], partitions[4], partitions[5]])
    for partition in partitions:
        reading.send(partition, b"b")
    reading.reader.add({partitions[1]: 1, partitions[4]: 1, partitions[5]: 1})
    reading.read_all()
    reading.reader.close()
