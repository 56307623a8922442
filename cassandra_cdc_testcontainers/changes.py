"""Reads a change topic as any consumer does: committed messages, decoded by the registry's schemas."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

if TYPE_CHECKING:
    from confluent_kafka import Message

_POLL_SECONDS = 0.5
_COMES_LATER = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._PARTITION_EOF}  # noqa: SLF001 - confluent_kafka's name


def read_changes(bootstrap: str, registry: str, topic: str, count: int, seconds: float) -> list[dict[str, Any]]:
    """Return the values of the topic's first `count` changes. TimeoutError if they are not there in time."""
    decode = AvroDeserializer(SchemaRegistryClient({"url": registry}))
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"changes-{uuid.uuid4()}",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 1000,  # the topic is made with the first change
        }
    )
    found: list[dict[str, Any]] = []
    deadline = time.monotonic() + seconds
    try:
        consumer.subscribe([topic])
        while len(found) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic} has {len(found)} changes after {seconds:.0f} s, not {count}: {found}")
            if (value := _value_of(consumer.poll(_POLL_SECONDS))) is not None:
                found.append(decode(value, SerializationContext(topic, MessageField.VALUE)))
    finally:
        consumer.close()
    return found


def _value_of(message: Message | None) -> bytes | None:
    """The value of a message; None if there is none yet. KafkaException for an error that stays."""
    if message is None:
        return None
    if (error := message.error()) is not None:
        if error.code() not in _COMES_LATER:
            raise KafkaException(error)
        return None
    return message.value()
