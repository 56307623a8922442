"""Reading complete topics: those of table schemas and of dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from cdc_common.clients.kafka import WITHOUT_GROUP, client_config
from stream_runtime.kafka.clients import QUICK, TIMEOUT, batches, driver_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import Message as KafkaClientMessage

    from cdc_common.settings import KafkaSettings


class KafkaMessage(NamedTuple):
    """A message of a topic."""

    # The key; None without one.
    key: bytes | None
    # The value; None for a tombstone.
    value: bytes | None
    # The headers, in order.
    headers: list[tuple[str, bytes | None]]


class TopicReader:
    """Reads the committed messages of a topic, each once, in the order of offsets within a partition.

    Partitions are assigned only while there is something to read: a broker answers a question for offsets after the
    fetch that waits on the same connection, which is half a second.
    """

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        self._settings = settings
        self._topic = topic
        self._next: dict[int, int] = {}
        self._has_partitions = False
        self._messages: list[KafkaMessage] = []  # read before an error, not returned yet
        self._consumer: Consumer | None = None

    def read_to_end(self) -> list[tuple[bytes, bytes]]:
        """Return (key, value) of each message that `read_messages` returns, except tombstones and messages without a
        key.
        """
        return [(key, value) for key, value, _ in self.read_messages() if key is not None and value is not None]

    def read_messages(self) -> list[KafkaMessage]:
        """The messages since the last call; none while the topic does not exist."""
        with driver_errors(f"read the topic {self._topic}"):
            try:
                self._read()
            except KafkaException:
                # A client keeps the answers of a starting broker for long: the next call uses a new one.
                self._close()
                raise
        messages, self._messages = self._messages, []
        return messages

    def _read(self) -> None:
        consumer = self._opened()
        ends = {place.partition: consumer.get_watermark_offsets(place, TIMEOUT)[1] for place in self._places()}
        if not self._is_before(ends):
            return
        consumer.assign(self._places())
        coming = batches(consumer)
        while self._is_before(ends):
            for message in next(coming):
                self._add_message(message)
        consumer.unassign()

    def _is_before(self, ends: Mapping[int, int]) -> bool:
        return any(self._next[partition] < end for partition, end in ends.items())

    def _add_message(self, message: KafkaClientMessage) -> None:
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        if message.error() is None:
            self._messages.append(_kafka_message(message))
            self._next[partition] = offset + 1
        else:  # the end
            self._next[partition] = offset

    def _opened(self) -> Consumer:
        """The consumer. The partitions are known once the topic exists, and looked up again by a new consumer."""
        if self._consumer is None:
            self._consumer = Consumer({**client_config(self._settings), **QUICK, **WITHOUT_GROUP})
            self._has_partitions = False
        if not self._has_partitions:
            topic = self._consumer.list_topics(self._topic, TIMEOUT).topics[self._topic]
            if topic.error is None:
                self._next = {partition: self._next.get(partition, 0) for partition in topic.partitions}
                self._has_partitions = True
            elif topic.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise KafkaException(topic.error)
        return self._consumer

    def _places(self) -> list[TopicPartition]:
        return [TopicPartition(self._topic, partition, at or OFFSET_BEGINNING) for partition, at in self._next.items()]

    def _close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def _kafka_message(message: KafkaClientMessage) -> KafkaMessage:
    key, value = message.key(), message.value()
    headers: Any = message.headers() or []  # a list, whatever its stub says
    return KafkaMessage(None if key is None else bytes(key), None if value is None else bytes(value), list(headers))
