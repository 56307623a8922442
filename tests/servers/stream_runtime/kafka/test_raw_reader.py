"""A worker's reader with many raw partitions: idle ones have a consumer of their own."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import cdc_native
from cdc_common.settings import KafkaSettings
from materializer.records import RawPartition
from stream_runtime.kafka import RawReader, ReadBudget, raw_reader
from stream_runtime.records import Record

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
@pytest.mark.parametrize("is_native", [True, False])
def test_both_consumers_make_the_same_records(
    kafka: KafkaBroker, partitions: list[RawPartition], monkeypatch: pytest.MonkeyPatch, *, is_native: bool
) -> None:
    monkeypatch.setattr(cdc_native, "is_enabled", lambda: is_native)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    first, second = partitions[:2]
    sent = [(b"k", b"v", 1), (None, b"", 1_700_000_000_000), (b"\0" * 300, b"x" * 5000, 7), (b"", None, 8)]
    for number, (key, value, timestamp) in enumerate(sent):
        producer.produce(first.topic, value, key, first.partition, timestamp=timestamp)
        if number % 2:
            producer.produce(second.topic, b"%d" % number, None, second.partition, timestamp=timestamp)
    producer.flush()
    reader = RawReader(KafkaSettings(bootstrap_servers=kafka.bootstrap_servers), "g", 50)
    reader.add({first: 0, second: 1})
    assert reader.positions([first, second]) == {first: None, second: None}
    found: dict[RawPartition, list[Record]] = {first: [], second: []}
    deadline = time.monotonic() + SECONDS
    while sum(map(len, found.values())) < len(sent) + 1:
        assert time.monotonic() < deadline
        for partition, records in reader.read(ReadBudget(2, 1_000_000), 0.1).records.items():
            found[partition] += records
    assert found[first] == [
        Record(key or b"", value or b"", number, timestamp) for number, (key, value, timestamp) in enumerate(sent)
    ]
    assert found[second] == [Record(b"", b"3", 1, 8)]
    assert {type(record) for records in found.values() for record in records} == {Record}
    assert (reader.next_offset(first), reader.next_offset(second)) == (4, 2)
    reader.remove([second])
    reader.add({second: 7})
    deadline = time.monotonic() + SECONDS
    while second not in reader.read(BUDGET, 0.1).lost:
        assert time.monotonic() < deadline, "an offset that does not exist"
    reader.close()


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
