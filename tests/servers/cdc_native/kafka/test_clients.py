"""The core's consumer and transactional producer on a real broker, where confluent-kafka's are the judge."""

from __future__ import annotations

import random
import signal
import struct
import threading
import time
from contextlib import closing
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer as Judge
from confluent_kafka import KafkaError, Producer, TopicPartition, cimpl
from confluent_kafka.admin import AdminClient, NewTopic

pytest.importorskip("cdc_native.kafka.consumer", reason="the native core is not compiled: test_compiled says so")

from cdc_native.avro.messages import Messages
from cdc_native.kafka.consumer import Consumer
from cdc_native.kafka.librdkafka import LibrdkafkaError
from cdc_native.kafka.source_batch import SourceBatch
from cdc_native.kafka.transactions import TransactionalProducer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dev.local_stack.servers.kafka import KafkaBroker

pytestmark = pytest.mark.servers
PARTITIONS = 3
MOST, MOST_BYTES = 100_000, 10_000_000
SECONDS = 60.0
Row = tuple[bytes | None, bytes | None, int, int]
LINES: list[tuple[int, str]] = []


def log(level: int, line: str) -> None:
    LINES.append((level, line))


@pytest.fixture
def servers(kafka: KafkaBroker) -> dict[str, object]:
    return {"bootstrap.servers": kafka.bootstrap_servers}


@pytest.fixture
def topic(servers: dict[str, Any], topic_prefix: str) -> str:
    name = f"{topic_prefix}.source"
    admin = AdminClient(servers)  # it would end its requests if it were deleted
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result()
    return name


def properties(servers: dict[str, object], group: str) -> dict[str, object]:
    return {
        **servers,
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
    }


@pytest.fixture
def consumer(servers: dict[str, object], topic: str) -> Iterator[Consumer]:
    with closing(Consumer(cimpl.__file__, properties(servers, f"{topic}.group"), log)) as made:
        yield made


def open_producer(servers: dict[str, object], topic: str) -> TransactionalProducer:
    made = TransactionalProducer(cimpl.__file__, {**servers, "transactional.id": f"{topic}.id"}, log)
    made.init(SECONDS)
    return made


def rows_of(batch: SourceBatch) -> list[Row]:
    count = len(batch)
    offsets = struct.unpack(f"={count}q", batch.offsets)
    timestamps = struct.unpack(f"={count}q", batch.timestamps)
    return list(zip(batch.keys.to_list(), batch.values.to_list(), offsets, timestamps, strict=True))


def read_to_ends(
    consumer: Consumer, topic: str, most: int = MOST, most_bytes: int = MOST_BYTES
) -> dict[int, list[Row]]:
    """Read each partition up to its end."""
    found: dict[int, list[Row]] = {number: [] for number in range(PARTITIONS)}
    ended: set[int] = set()
    deadline = time.monotonic() + SECONDS
    while len(ended) < PARTITIONS and time.monotonic() < deadline:
        batches, errors = consumer.poll(most, most_bytes, 0.2)
        for batch in batches:
            assert batch.topic == topic
            found[batch.partition] += rows_of(batch)
        for name, number, _, code, _ in errors:
            assert (name, code) == (topic, KafkaError._PARTITION_EOF)
            ended.add(number)
    return found


def errors_of(consumer: Consumer) -> list[tuple[str | None, int, int, int, str]]:
    """The first errors that come."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if errors := consumer.poll(MOST, MOST_BYTES, 0.2)[1]:
            return errors
    return []


def interrupted(consumer: Consumer) -> None:
    """A poll that a signal ends after messages have come."""

    def stop(_number: int, _frame: object) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 2.0)
    try:
        with pytest.raises(InterruptedError):
            consumer.poll(MOST, MOST_BYTES, SECONDS)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def judged(
    servers: dict[str, object], topic: str, offsets: Mapping[int, int] = MappingProxyType({})
) -> dict[int, list[Row]]:
    """The same by confluent-kafka's consumer. offsets: of partitions that are not read from the start."""
    judge = Judge(properties(servers, f"{topic}.judge"))
    judge.assign([TopicPartition(topic, number, offsets.get(number, 0)) for number in range(PARTITIONS)])
    found: dict[int, list[Row]] = {number: [] for number in range(PARTITIONS)}
    ended = 0
    deadline = time.monotonic() + SECONDS
    while ended < PARTITIONS and time.monotonic() < deadline:
        for message in judge.consume(1000, 0.2):
            number, offset = message.partition(), message.offset()
            assert number is not None
            assert offset is not None
            if message.error() is not None:
                ended += 1
            else:
                found[number].append((message.key(), message.value(), offset, message.timestamp()[1]))
    judge.close()
    return found


def fill(servers: dict[str, Any], topic: str) -> None:
    """Messages of all kinds, and transactions that are committed and aborted."""
    choose = random.Random(7)
    kinds = [None, b"", b"k", b"\0" * 100, b"v" * 5000]
    plain = Producer(servers)
    transactional = Producer({**servers, "transactional.id": f"{topic}.fill"})
    transactional.init_transactions(SECONDS)
    for _ in range(40):
        is_aborted = choose.random() < 0.4
        transactional.begin_transaction()
        for producer in (plain, transactional):
            for _ in range(choose.randrange(30)):
                producer.produce(topic, choose.choice(kinds), choose.choice(kinds), choose.randrange(PARTITIONS))
        if is_aborted:
            transactional.flush()
            transactional.abort_transaction(SECONDS)
        else:
            transactional.commit_transaction(SECONDS)
    assert plain.flush(SECONDS) == 0


class TestConsumer:
    @pytest.mark.parametrize(("most", "most_bytes"), [(MOST, MOST_BYTES), (7, MOST_BYTES), (MOST, 20_000)])
    def test_reads_what_confluents_consumer_reads(
        self, servers: dict[str, object], topic: str, consumer: Consumer, most: int, most_bytes: int
    ) -> None:
        fill(servers, topic)
        consumer.assign([(topic, number, 0) for number in range(PARTITIONS)])
        found = read_to_ends(consumer, topic, most, most_bytes)
        assert found == judged(servers, topic)
        assert min(map(len, found.values())) > 50

    def test_a_batch_has_its_size_and_its_parts(self, servers: dict[str, Any], topic: str, consumer: Consumer) -> None:
        producer = Producer(servers)
        for number in range(10):
            producer.produce(topic, bytes(number), b"key", partition=1)
        producer.flush()
        consumer.assign([(topic, 1, 0)])
        batches: list[SourceBatch] = []
        deadline = time.monotonic() + SECONDS
        while sum(map(len, batches)) < 10 and time.monotonic() < deadline:
            batches += consumer.poll(MOST, MOST_BYTES, 0.2)[0]
        rows = [row for batch in batches for row in rows_of(batch)]
        assert sum(batch.size for batch in batches) == 10 * 3 + sum(range(10))
        whole = SourceBatch.of(topic, 1, rows)
        assert rows_of(whole.part(3, 7)) == rows[3:7]
        assert rows_of(whole.part(3, 7).part(1, 2)) == rows[4:5]
        assert whole.fitting(0, 4, 1000) == 4
        assert whole.fitting(9, 4, 1000) == 10
        assert whole.fitting(0, 100, 3 + 4 + 5) == 3
        assert whole.fitting(5, 100, 1) == 6
        with pytest.raises(IndexError):
            whole.part(3, 11)

    def test_reads_on_after_partitions_come_and_go(
        self, servers: dict[str, Any], topic: str, consumer: Consumer
    ) -> None:
        fill(servers, topic)
        expected = judged(servers, topic)
        consumer.assign([(topic, 0, 0), (topic, 1, 0)])
        consumer.poll(MOST, MOST_BYTES, 1.0)
        consumer.unassign([(topic, 0), (topic, 1)])
        consumer.assign([(topic, number, expected[number][10][2]) for number in range(PARTITIONS)])
        assert read_to_ends(consumer, topic) == {number: rows[10:] for number, rows in expected.items()}

    def test_an_offset_that_was_never_there_is_an_error(self, topic: str, consumer: Consumer) -> None:
        consumer.assign([(topic, 2, 500)])
        ((name, number, _, code, text),) = errors_of(consumer)
        assert (name, number, code) == (topic, 2, KafkaError._AUTO_OFFSET_RESET)
        assert "out of range" in text

    def test_messages_that_are_deleted_while_it_reads_are_an_error(
        self, servers: dict[str, Any], topic: str, consumer: Consumer
    ) -> None:
        fill(servers, topic)
        kept = judged(servers, topic)[1][-1][2]
        admin = AdminClient(servers)
        admin.delete_records([TopicPartition(topic, 1, kept)])[TopicPartition(topic, 1)].result(SECONDS)
        consumer.assign([(topic, 1, kept - 1)])
        assert [error[:2] + error[3:4] for error in errors_of(consumer)] == [(topic, 1, KafkaError._AUTO_OFFSET_RESET)]
        consumer.unassign([(topic, 1)])
        consumer.assign([(topic, number, kept if number == 1 else 0) for number in range(PARTITIONS)])
        assert read_to_ends(consumer, topic) == judged(servers, topic, {1: kept})

    def test_an_exception_of_a_signal_loses_nothing(
        self, servers: dict[str, Any], topic: str, consumer: Consumer
    ) -> None:
        fill(servers, topic)
        consumer.assign([(topic, number, 0) for number in range(PARTITIONS)])
        interrupted(consumer)
        assert read_to_ends(consumer, topic) == judged(servers, topic)

    def test_an_exception_of_a_signal_leaves_nothing_of_a_partition_that_is_removed(
        self, servers: dict[str, Any], topic: str, consumer: Consumer
    ) -> None:
        fill(servers, topic)
        expected = judged(servers, topic)
        consumer.assign([(topic, number, 0) for number in range(PARTITIONS)])
        interrupted(consumer)
        consumer.unassign([(topic, 1)])
        consumer.assign([(topic, 1, expected[1][3][2])])
        assert read_to_ends(consumer, topic) == {**expected, 1: expected[1][3:]}

    def test_other_threads_run_while_it_waits(self, consumer: Consumer) -> None:
        ticks: list[float] = []

        def tick() -> None:
            for _ in range(20):
                ticks.append(time.monotonic())
                time.sleep(0.01)

        thread = threading.Thread(target=tick)
        thread.start()
        began = time.monotonic()
        assert consumer.poll(MOST, MOST_BYTES, 1.0) == ([], [])
        thread.join()
        assert sum(tick - began < 0.9 for tick in ticks) > 5

    def test_a_closed_consumer_reads_nothing(self, consumer: Consumer) -> None:
        consumer.close()
        with pytest.raises(ValueError, match="closed"):
            consumer.poll(MOST, MOST_BYTES, 0.0)


class TestTransactions:
    def test_messages_and_offsets_are_committed_together(
        self, servers: dict[str, object], topic: str, consumer: Consumer
    ) -> None:
        producer = open_producer(servers, topic)
        producer.begin()
        producer.send(topic, 0, b"a", b"1")
        producer.send(topic, 0, None, None)
        producer.send(topic, 0, b"", b"")
        producer.send_offsets([(topic, 2, 7, "mark")], f"{topic}.group", SECONDS)
        assert consumer.committed([(topic, 0)], SECONDS) == [(-1001, None, 0)]
        producer.commit(SECONDS)
        assert consumer.committed([(topic, 2), (topic, 0)], SECONDS) == [(7, "mark", 0), (-1001, None, 0)]
        assert [row[:3] for row in judged(servers, topic)[0]] == [(b"a", b"1", 0), (None, None, 1), (b"", b"", 2)]
        assert consumer.bounds(topic, 0, SECONDS) == (0, 4)

    def test_headers_come_as_they_were_sent(self, servers: dict[str, object], topic: str) -> None:
        producer = open_producer(servers, topic)
        producer.begin()
        headers = [("a", b"1"), ("a", b""), ("ä", bytes(range(256)))]
        producer.send(topic, 1, b"key", b"value", headers)
        producer.send(topic, 1, None, None, headers[:1])
        producer.commit(SECONDS)
        judge = Judge({**properties(servers, f"{topic}.judge"), "enable.partition.eof": False})
        judge.assign([TopicPartition(topic, 1, 0)])
        found = judge.consume(2, SECONDS)
        judge.close()
        assert [(message.key(), message.value(), message.headers()) for message in found] == [
            (b"key", b"value", headers),
            (None, None, headers[:1]),
        ]

    @pytest.mark.parametrize("size", [0, 1, 24, 40, 300])  # 24 and 40: the C library has no room after their text
    def test_metadata_is_what_confluents_client_reads_and_writes(
        self, servers: dict[str, Any], topic: str, consumer: Consumer, size: int
    ) -> None:
        text, group = "m" * size, f"{topic}.group"
        producer = open_producer(servers, topic)
        producer.begin()
        producer.send_offsets([(topic, 0, 7, text)], f"{topic}.group", SECONDS)
        producer.commit(SECONDS)
        judge = Judge({**servers, "group.id": group, "enable.auto.commit": False})
        (found,) = judge.committed([TopicPartition(topic, 0)], SECONDS)
        assert (found.offset, found.metadata or "") == (7, text)
        judge.commit(offsets=[TopicPartition(topic, 1, 8, metadata=text)], asynchronous=False)
        judge.close()
        ((offset, metadata, _),) = consumer.committed([(topic, 1)], SECONDS)
        assert (offset, metadata or "") == (8, text)

    def test_an_aborted_transaction_leaves_nothing(
        self, servers: dict[str, object], topic: str, consumer: Consumer
    ) -> None:
        producer = open_producer(servers, topic)
        producer.begin()
        producer.send(topic, 0, b"a", b"1")
        producer.send_offsets([(topic, 2, 7, "")], f"{topic}.group", SECONDS)
        producer.abort(SECONDS)
        assert consumer.committed([(topic, 2)], SECONDS) == [(-1001, None, 0)]
        assert judged(servers, topic)[0] == []

    def test_groups_are_sent_in_the_order_of_the_batch(self, servers: dict[str, object], topic: str) -> None:
        values = [
            b"\0" + struct.pack(">I", choice) + bytes([number]) for number, choice in enumerate([1, 2, 2, 1, 3, 1])
        ]
        groups = Messages.of(values).groups()
        producer = open_producer(servers, topic)
        producer.begin()
        producer.send_groups(1, [(topic, Messages.of([None] * len(found)), found) for _, found in groups])
        producer.commit(SECONDS)
        assert [row[1] for row in judged(servers, topic)[1]] == values

    def test_two_messages_with_one_place_are_refused(self, servers: dict[str, object], topic: str) -> None:
        producer = open_producer(servers, topic)
        producer.begin()
        group = topic, Messages.of([b"k"]), Messages.of([b"v"])
        with pytest.raises(ValueError, match="one place"):
            producer.send_groups(0, [group, group])

    def test_a_second_producer_fences_the_first(self, servers: dict[str, object], topic: str) -> None:
        first = open_producer(servers, topic)
        first.begin()
        first.send(topic, 0, b"a", b"first")
        second = open_producer(servers, topic)
        second.begin()
        second.send(topic, 0, b"a", b"second")
        second.commit(SECONDS)
        with pytest.raises(LibrdkafkaError) as raised:
            first.commit(SECONDS)
        assert raised.value.code in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)
        assert [row[1] for row in judged(servers, topic)[0]] == [b"second"]

    def test_more_messages_than_the_queue_holds_are_sent(self, servers: dict[str, object], topic: str) -> None:
        producer = open_producer({**servers, "queue.buffering.max.messages": 100}, topic)
        values = [str(number).encode() for number in range(5000)]
        producer.begin()
        producer.send_groups(2, [(topic, Messages.of(values), Messages.of(values))])
        producer.commit(SECONDS)
        assert [row[1] for row in judged(servers, topic)[2]] == values

    def test_a_message_that_is_too_large_fails_the_transaction(self, servers: dict[str, object], topic: str) -> None:
        producer = open_producer({**servers, "message.max.bytes": 100_000_000}, topic)
        producer.begin()
        producer.send(topic, 0, None, random.Random(1).randbytes(3_000_000))
        with pytest.raises(LibrdkafkaError) as raised:
            producer.commit(SECONDS)
        assert (raised.value.code, raised.value.requires_abort) == (KafkaError.MSG_SIZE_TOO_LARGE, True)
