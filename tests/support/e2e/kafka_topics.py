"""Topics as they are, without our programs' readers."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition


def read_all(servers: str, topic: str) -> list[tuple[bytes, bytes]]:
    """Keys and values of all that a topic of one partition holds now, tombstones left out."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "tests", "enable.auto.commit": False})
    try:
        place = TopicPartition(topic, 0, 0)
        _, end = consumer.get_watermark_offsets(place)
        consumer.assign([place])
        found = []
        while consumer.position([place])[0].offset < end:
            for message in consumer.consume(100, timeout=0.2):
                key, value = message.key(), message.value()
                if message.error() is None and value is not None:
                    assert key is not None
                    found.append((key, value))
        return found
    finally:
        consumer.close()
