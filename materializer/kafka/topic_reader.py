"""Topics that are read whole: those of table schemas and of dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from cdc_program.kafka import GROUP_REFUSED, WITHOUT_GROUP, client_config
from materializer.kafka.clients import TIMEOUT, driver_errors

if TYPE_CHECKING:
    from confluent_kafka import Message as KafkaClientMessage

    from cdc_program.settings import KafkaSettings


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
        return {partition: self._end(TopicPartition(self._topic, partition)) for partition in self._next}

    def _end(self, partition: TopicPartition) -> int:
        try:
            _, end = self._consumer.get_watermark_offsets(partition, TIMEOUT)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._UNKNOWN_PARTITION:  # noqa: SLF001
                raise
            # A broker that was waking up may have said so, and the client would believe it for minutes.
            self._consumer.list_topics(self._topic, TIMEOUT)
            _, end = self._consumer.get_watermark_offsets(partition, TIMEOUT)
        return end


def _kafka_message(message: KafkaClientMessage) -> KafkaMessage:
    key, value = message.key(), message.value()
    headers: Any = message.headers() or []  # a list, whatever its stub says
    return KafkaMessage(None if key is None else bytes(key), None if value is None else bytes(value), list(headers))
