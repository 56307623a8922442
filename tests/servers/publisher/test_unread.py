"""A real Kafka says what a consumer group has not read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_common.settings import KafkaSettings
from publisher.kafka.unread import GroupReader, Unread

if TYPE_CHECKING:
    from dev.local_stack.servers.kafka import KafkaBroker

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]

SECONDS = 30.0


def test_what_a_group_has_not_read(kafka: KafkaBroker, topic_prefix: str) -> None:
    servers: dict[str, Any] = {"bootstrap.servers": kafka.bootstrap_servers}
    topic, group = f"{topic_prefix}.unread", f"{topic_prefix}-group"
    admin = AdminClient(servers)  # it has to live until its answer has come
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(SECONDS)
    producer = Producer(servers)
    for partition, count in ((0, 10), (1, 4)):
        for _ in range(count):
            producer.produce(topic, b"x", partition=partition)
    assert producer.flush(SECONDS) == 0
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap_servers)
    reader = GroupReader(settings, group, topic, 2)
    assert reader.read() == {}
    consumer = Consumer({**servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    assert reader.read() == {0: Unread(3, 10)}
    consumer.commit(offsets=[TopicPartition(topic, 0, 10), TopicPartition(topic, 1, 0)], asynchronous=False)
    assert reader.read() == {0: Unread(10, 10), 1: Unread(0, 4)}
    consumer.close()
