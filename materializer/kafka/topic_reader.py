"""Topics that are read whole: those of table schemas and of dead letters, and a partition of any other."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from cdc_program.kafka import GROUP_REFUSED, WITHOUT_GROUP, client_config
from materializer.kafka.clients import TIMEOUT, driver_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Message as KafkaClientMessage

    from cdc_program.settings import KafkaSettings

_READ_AHEAD_KBYTES = 4096


class KafkaMessage(NamedTuple):
    """A message of a topic."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class TopicReader:
    """The committed messages of a topic, each once, in the order of the partitions' offsets."""

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        self._topic = topic
        self._next: dict[int, int] = {}
        self._messages: list[KafkaMessage] = []  # read, but not yet to the end
        self._consumer = Consumer({**client_config(settings), **WITHOUT_GROUP})

    def read_to_end(self) -> list[tuple[bytes, bytes]]:
        """As `read_messages`, (key, value) without tombstones."""
        return [(key, value) for key, value, _ in self.read_messages() if key is not None and value is not None]

    def read_messages(self) -> list[KafkaMessage]:
        """What has come since the last call; nothing while there is no topic."""
        with driver_errors(f"read the topic {self._topic}"):
            ends = self._ends()
            while any(self._next[partition] < end for partition, end in ends.items()):
                for message in self._consumer.consume(1000, 0.5):
                    error, partition, offset = message.error(), message.partition(), message.offset()
                    if error is not None and error.name() == GROUP_REFUSED:
                        continue
                    if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001
                        raise KafkaException(error)
                    assert partition is not None
                    assert offset is not None
                    self._next[partition] = offset if error is not None else offset + 1
                    if error is None:
                        self._messages.append(_kafka_message(message))
        messages, self._messages = self._messages, []
        return messages

    def _ends(self) -> dict[int, int]:
        if not self._next:
            topic = self._consumer.list_topics(self._topic, TIMEOUT).topics[self._topic]
            if topic.error is not None:
                return {}
            self._next = dict.fromkeys(topic.partitions, 0)
            self._consumer.assign([TopicPartition(self._topic, each, OFFSET_BEGINNING) for each in self._next])
        ends = {}
        for partition in self._next:
            _, ends[partition] = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), TIMEOUT)
        return ends


def read_partition(settings: KafkaSettings, topic: str, partition: int) -> Iterator[tuple[bytes, bytes | None]]:
    """The committed messages of a partition as far as its end is when it is reached, (key, value), fetched as they are
    asked for. KafkaException.
    """
    config = {**client_config(settings), **WITHOUT_GROUP, "queued.max.messages.kbytes": _READ_AHEAD_KBYTES}
    consumer = Consumer(config)
    try:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        waited_until = time.monotonic() + TIMEOUT
        while time.monotonic() < waited_until:
            for message in consumer.consume(1000, 0.5):
                error = message.error()
                if error is None:
                    waited_until = time.monotonic() + TIMEOUT
                    found = _kafka_message(message)
                    yield found.key or b"", found.value
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                    return
                elif error.name() != GROUP_REFUSED:
                    raise KafkaException(error)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001
    finally:
        consumer.close()


def _kafka_message(message: KafkaClientMessage) -> KafkaMessage:
    key, value = message.key(), message.value()
    headers: Any = message.headers() or []  # a list, whatever its stub says
    return KafkaMessage(None if key is None else bytes(key), None if value is None else bytes(value), list(headers))
