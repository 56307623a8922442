"""Topics of benchmarks: they are made, and their messages counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

if TYPE_CHECKING:
    from collections.abc import Callable

CREATE_SECONDS = 60


def create_topics(bootstrap: str, *topics: NewTopic) -> None:
    """Create topics, and wait until they are there."""
    admin = AdminClient({"bootstrap.servers": bootstrap})  # it has to live until its answers have come
    for future in admin.create_topics(list(topics)).values():
        future.result(CREATE_SECONDS)


def message_counter(bootstrap: str, topic: str, count: int) -> Callable[[], int]:
    """A function that counts the messages in the topic's `count` partitions; 0 while a new topic has no leader yet."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})
    partitions = [TopicPartition(topic, number) for number in range(count)]

    def counted() -> int:
        try:
            return sum(consumer.get_watermark_offsets(partition, timeout=30)[1] for partition in partitions)
        except KafkaException as error:
            if error.args[0].retriable() or error.args[0].code() == KafkaError.NOT_LEADER_FOR_PARTITION:
                return 0
            raise click.ClickException(f"Kafka does not say where {topic} ends: {error}") from error

    return counted
