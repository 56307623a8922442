"""A transaction's error names what made it fail, whichever request finds out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from cdc_common.clients.kafka_errors import is_fenced, kafka_error
from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings import KafkaSettings
from materializer.records import RawPartition
from stream_runtime.exactly_once.position import Position
from stream_runtime.kafka import FencingProducer
from stream_runtime.kafka.producer import IS_NATIVE, PRODUCER_DEFAULTS
from stream_runtime.kafka.source_reader import SourceReader
from stream_runtime.records import Message
from tests.support.mock_brokers import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    PRODUCE,
    MockBroker,
    mock_broker,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPIC = "cdc.shop.orders"
RAW = RawPartition("cdc.raw.shop.orders", 0)
POSITION = Position(0, "", 1)
REFUSED = KafkaError.MSG_SIZE_TOO_LARGE


@pytest.fixture
def broker() -> Iterator[MockBroker]:
    with mock_broker() as made:
        made.create_topic(TOPIC)
        made.create_topic(RAW.topic)
        yield made


@pytest.fixture(params=[False, True], ids=["confluent-kafka", "core"])
def producer(broker: MockBroker, request: pytest.FixtureRequest) -> Iterator[FencingProducer]:
    """By each of the clients. Without the native core the second one is the first one again."""
    settings = KafkaSettings(bootstrap_servers=broker.servers)
    if request.param:
        consumer = SourceReader(settings, "g").consumer
    else:
        consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": "g"})
    own = PRODUCER_DEFAULTS._replace(is_native=request.param and IS_NATIVE)
    producer = FencingProducer(settings, "g", str(RAW), consumer, own)
    producer.begin()
    yield producer
    producer.abandon()
    consumer.close()


def send(producer: FencingProducer) -> None:
    producer.send(Message(TOPIC, 0, b"key", b"value"))


def send_until_refused(producer: FencingProducer) -> None:
    for _ in range(1000):
        send(producer)
        time.sleep(0.01)


def flush(producer: FencingProducer) -> None:
    """The core's producer has no such method."""
    if hasattr(producer._producer, "flush"):
        producer._producer.flush(10)
    else:
        time.sleep(2.0)


def test_a_refused_message_is_named_if_it_is_refused_while_the_position_is_sent(
    broker: MockBroker, producer: FencingProducer
) -> None:
    send(producer)
    flush(producer)  # registers the partition, so that the next message waits for no other request
    broker.answer(ADD_OFFSETS_TO_TXN, 0, 1500)
    broker.answer(PRODUCE, REFUSED, 500)
    send(producer)
    with pytest.raises(CdcError, match=f"ProduceRequest for {TOPIC}.*Message size too large") as caught:
        producer.send_positions({RAW: POSITION})
    assert caught.value.code is Code.MESSAGE_TOO_LARGE
    assert isinstance(caught.value.__cause__, KafkaException)
    assert caught.value.__cause__.args[0].code() == KafkaError._STATE  # what librdkafka says of the position


def test_a_refused_message_is_named_if_it_is_refused_during_the_commit(
    broker: MockBroker, producer: FencingProducer
) -> None:
    broker.answer(PRODUCE, REFUSED, 6000)  # after the position is sent, also on a busy machine
    send(producer)
    producer.send_positions({RAW: POSITION})
    with pytest.raises(CdcError, match="Message size too large") as caught:
        producer.commit()
    assert caught.value.code is Code.MESSAGE_TOO_LARGE


def test_an_error_that_has_no_other_cause_remains(broker: MockBroker, producer: FencingProducer) -> None:
    broker.answer(END_TXN, KafkaError.INVALID_TXN_STATE, 0)
    send(producer)
    producer.send_positions({RAW: POSITION})
    with pytest.raises(KafkaException, match="INVALID_TXN_STATE"):
        producer.commit()


def test_an_error_without_a_transaction_remains(producer: FencingProducer) -> None:
    send(producer)
    producer.commit()
    with pytest.raises(KafkaException) as caught:
        producer.commit()
    assert caught.value.args[0].code() == KafkaError._STATE


def test_a_message_after_another_producer_has_taken_over_names_it(
    broker: MockBroker, producer: FencingProducer
) -> None:
    broker.answer(ADD_PARTITIONS_TO_TXN, KafkaError.PRODUCER_FENCED, 0)
    with pytest.raises(KafkaException) as caught:
        send_until_refused(producer)
    assert is_fenced(caught.value.args[0])


@pytest.mark.parametrize("code", [KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH])
def test_a_fenced_producer_is_not_said_to_lack_rights(code: int) -> None:
    error = kafka_error("Cannot fold messages", KafkaError(code))
    assert error.code is Code.KAFKA_REFUSED
    assert "a newer producer has taken over" in error.problem
    assert "rights" not in error.fix
