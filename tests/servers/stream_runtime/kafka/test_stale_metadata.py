"""A broker that was frozen does not know its own partitions for a moment, and a client keeps that answer for minutes.
The materializer's requests succeed soon all the same; until then they fail with KAFKA_UNREACHABLE, not KAFKA_REFUSED.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings import KafkaSettings
from dev.local_stack.servers.kafka import KafkaBroker
from materializer.records import RawPartition
from stream_runtime.kafka import RawReader, ReadBudget, TopicReader, Topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive]
FREEZES = 3  # what the broker says when it wakes up depends on luck
FROZEN_SECONDS = 15.0  # the controller takes a broker for gone after 9
LONG_FROZEN_SECONDS = 65.0  # of clients that ask on one in ten or so took no part any more
CLIENTS = 12  # of each kind
APART_SECONDS = 0.04  # from one client's first question to the next one's
ANSWER_SECONDS = 45.0  # a request that the broker lost is given up after 30
PARTITIONS, MESSAGES = 3, 30
TOPIC = "t.raw.shop.orders"
RAW = [RawPartition(TOPIC, number) for number in range(PARTITIONS)]
BOUNDS = (0, MESSAGES // PARTITIONS)


def topics_bounds(settings: KafkaSettings) -> Callable[[], bool]:
    topics = Topics(settings)
    return lambda: topics.bounds(RAW) == dict.fromkeys(RAW, BOUNDS)


def shapes(settings: KafkaSettings) -> Callable[[], bool]:
    topics = Topics(settings)
    return lambda: topics.shapes([TOPIC])[TOPIC].partitions == PARTITIONS


def read_raw(settings: KafkaSettings) -> Callable[[], bool]:
    reader, count = RawReader(settings, "g", 50), [0]
    reader.add(dict.fromkeys(RAW, 0))

    def read() -> bool:
        records, lost, errors = reader.read(ReadBudget(MESSAGES, 1_000_000), 0.2)
        assert not lost
        assert not errors
        count[0] += sum(len(batch) for batch in records.values())
        return count[0] == MESSAGES

    return read


def read_whole(settings: KafkaSettings) -> Callable[[], bool]:
    reader, count = TopicReader(settings, TOPIC), [0]

    def read() -> bool:
        count[0] += len(reader.read_messages())
        return count[0] == MESSAGES

    return read


def read_on(settings: KafkaSettings) -> Callable[[], bool]:
    """Return a question that reads as the driver follows the tables' schemas: it had read all before the
    broker froze.
    """
    reader = TopicReader(settings, TOPIC)
    assert len(reader.read_messages()) == MESSAGES
    return lambda: reader.read_messages() == []


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    """One of the test's own, with the topic."""
    with KafkaBroker() as broker:
        servers: dict[str, str | int | float | bool] = {"bootstrap.servers": broker.bootstrap_servers}
        admin = AdminClient(servers)
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()
        producer = Producer(servers)
        for number in range(MESSAGES):
            producer.produce(TOPIC, b"v", b"k", number % PARTITIONS)
        producer.flush()
        yield broker


def ask(question: Callable[[], bool], after: float) -> float:
    """Again and again, as the driver does: after how many seconds it was answered."""
    time.sleep(after)
    began = time.monotonic()
    while True:
        try:
            is_answered = question()
        except CdcError as error:
            assert error.code is Code.KAFKA_UNREACHABLE, error  # noqa: PT017 - no other may come
            is_answered = False
        seconds = time.monotonic() - began
        if is_answered or seconds > 2 * ANSWER_SECONDS:
            return seconds
        time.sleep(0.1)


def test_what_a_waking_broker_said_is_not_believed_for_long(broker: KafkaBroker) -> None:
    settings = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)
    kinds = (topics_bounds, shapes, read_raw, read_whole)
    for _ in range(FREEZES):
        questions = [(kind, kind(settings), number * APART_SECONDS) for kind in kinds for number in range(CLIENTS)]
        broker.pause()
        time.sleep(FROZEN_SECONDS)
        broker.resume()
        with ThreadPoolExecutor(len(questions)) as pool:
            asked = [(kind.__name__, pool.submit(ask, question, after)) for kind, question, after in questions]
        late = [(name, answer.result()) for name, answer in asked if answer.result() > ANSWER_SECONDS]
        assert late == []


def test_who_asks_all_the_while_is_answered_again(broker: KafkaBroker) -> None:
    settings = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)
    questions = [read_on(settings) for _ in range(2 * CLIENTS)]
    awake = threading.Event()
    with ThreadPoolExecutor(len(questions)) as pool:
        asked = [pool.submit(ask_on, question, awake) for question in questions]
        broker.pause()
        time.sleep(LONG_FROZEN_SECONDS)
        broker.resume()
        awake.set()
    assert [answer.result() for answer in asked if answer.result() > ANSWER_SECONDS] == []


def ask_on(question: Callable[[], bool], awake: threading.Event) -> float:
    """Ask as `ask` does, but already while the broker is frozen. Return after how many seconds it was answered once the
    broker is awake.
    """
    while not awake.wait(0.5):
        with suppress(CdcError):
            question()
    return ask(question, 0.0)
