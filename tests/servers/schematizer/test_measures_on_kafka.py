"""Rates and lags of a real Kafka, through the one module that asks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_common.settings import KafkaSettings
from dev.local_stack.process.processes import wait_until
from schematizer.measures.measured import measured
from schematizer.measures.offsets import Offsets, OffsetsError
from schematizer.measures.sampler import Sampler

if TYPE_CHECKING:
    from dev.local_stack.servers.kafka import KafkaBroker

pytestmark = pytest.mark.servers
SECONDS = 60.0


def test_offsets_of_topics_and_groups(kafka: KafkaBroker, topic_prefix: str) -> None:
    topic = f"{topic_prefix}.shop.orders"
    servers: dict[str, str | int | float | bool] = {"bootstrap.servers": kafka.bootstrap_servers}
    admin = AdminClient(servers)
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(60)
    offsets = Offsets(KafkaSettings(bootstrap_servers=kafka.bootstrap_servers))
    # A partition of a new topic may not have a leader yet: it is not measured then.
    wait_until(lambda: len(offsets.sample([topic]).ends) == 2, "the leaders of both partitions", SECONDS)
    first = offsets.sample([topic, f"{topic_prefix}.none"])
    assert dict(first.ends) == {(topic, 0): 0, (topic, 1): 0}

    producer = Producer(servers)
    for number in range(10):
        producer.produce(topic, b"x", partition=number % 2)
    assert producer.flush(60) == 0
    reader = Consumer({**servers, "group.id": f"{topic_prefix}-reader", "enable.auto.commit": False})
    reader.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    reader.close()

    last = offsets.sample([topic, f"{topic_prefix}.none"])
    found = measured(first, last)[topic]
    assert (found.partitions, dict(found.lags)) == (2, {f"{topic_prefix}-reader": 2})
    assert found.rate == pytest.approx(10 / (last.seconds - first.seconds))
    assert offsets.sample([]).ends == {}


def test_a_kafka_that_is_away_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schematizer.measures.offsets.ANSWER_SECONDS", 1.0)
    offsets = Offsets(KafkaSettings(bootstrap_servers="127.0.0.1:9"))
    with pytest.raises(OffsetsError):
        offsets.sample(["cdc.shop.orders"])
    sampler = Sampler(offsets, lambda: ["cdc.shop.orders"], 1.0)
    sampler.measure()
    assert sampler.of("cdc.shop.orders") is None
    assert (sampler.problem or "").startswith("Kafka does not answer: ")
