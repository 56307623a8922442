"""Brokers forget an idle producer: a task makes a new one and goes on. One that is fenced by another owner ends."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
import structlog
from confluent_kafka import KafkaException

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.servers.choice import kafka_broker
from dev.verify.chaos.matrix import make_setup, produce
from materializer.worker.open_partitions import OpenPartitions
from stream_runtime.exactly_once.position import Position
from stream_runtime.kafka import FencingProducer, GroupPositions, ProducerExpiredError, driver_errors
from stream_runtime.records import Message

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker
    from tests.support.materializer.protocol_run import Setup

pytestmark = pytest.mark.servers
FORGETTING = {
    "transactional.id.expiration.ms": "4000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
}
IDLE_SECONDS = 10.0


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    """A broker that forgets idle producers after 4 seconds instead of 7 days."""
    with kafka_broker(settings=FORGETTING) as running:
        yield running


@pytest.fixture
def setup(broker: KafkaBroker, topic_prefix: str, tmp_path: Path) -> Setup:
    return make_setup(broker.bootstrap_servers, topic_prefix, tmp_path, messages=20)


def test_a_task_whose_producer_has_expired_goes_on_without_a_stop(setup: Setup) -> None:
    plan, open_partitions = setup.plan(), OpenPartitions()
    done = 0
    for _ in range(2):
        records = setup.records()
        with structlog.testing.capture_logs() as logged:
            report = open_partitions.process(plan, setup.raw, records[done:])
        renewed = [entry for entry in logged if entry["event"] == "producer renewed"]
        assert report.renewed == len(renewed) == (1 if done else 0)
        assert {entry["log_level"] for entry in logged} <= {"warning"}
        done = len(records)
        time.sleep(IDLE_SECONDS)
        produce(setup, 7)
    open_partitions.close_all()
    setup.check(done)


@pytest.fixture
def first(setup: Setup) -> Iterator[FencingProducer]:
    """A producer with an open transaction."""
    producer = new_producer(setup)
    producer.begin()
    producer.send(message(setup))
    yield producer
    producer.abandon()


def new_producer(setup: Setup) -> FencingProducer:
    kafka = setup.plan().kafka
    return FencingProducer(kafka, setup.prefix, str(setup.raw), GroupPositions(kafka, setup.prefix).consumer)


def commit(setup: Setup, producer: FencingProducer) -> None:
    with driver_errors("commit"):
        producer.send_positions({setup.raw: Position(1, "", 1)})
        producer.commit()


def message(setup: Setup) -> Message:
    return Message(setup.changes, 0, b"key", b"value")


def test_a_real_owner_ends_the_old_attempt(setup: Setup, first: FencingProducer) -> None:
    second = new_producer(setup)
    with pytest.raises(CdcError, match="a newer producer has taken over") as raised:
        commit(setup, first)
    assert raised.value.code is Code.KAFKA_REFUSED
    assert not isinstance(raised.value, ProducerExpiredError)
    second.begin()
    second.send_positions({setup.raw: Position(2, "", 1)})
    second.commit()


def test_an_old_attempt_whose_id_was_forgotten_cannot_commit_beside_the_new_owner(
    setup: Setup, first: FencingProducer
) -> None:
    """The id expires, and a new owner takes it: the old attempt has no way back but a producer of its own."""
    first.send_positions({setup.raw: Position(1, "", 1)})
    first.commit()
    time.sleep(IDLE_SECONDS)
    second = new_producer(setup)
    second.begin()
    second.send_positions({setup.raw: Position(2, "", 1)})
    first.begin()
    first.send(message(setup))
    with pytest.raises((CdcError, KafkaException)):
        first.send_positions({setup.raw: Position(3, "", 1)})
    second.commit()
    kafka = setup.plan().kafka
    position = GroupPositions(kafka, setup.prefix).read([setup.raw])[setup.raw]
    assert position is not None
    assert position.offset == 2
