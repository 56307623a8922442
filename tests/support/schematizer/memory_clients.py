"""A producer and a consumer of Kafka in memory, as far as cdc_common.clients.by_schema uses them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import TopicPartition


class Sent(NamedTuple):
    topic: str
    key: object
    value: bytes | None


class MemoryProducer:
    """`error`: what each delivery fails with."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.error: KafkaError | None = None
        self.full = 0  # how often the queue is full from now on

    def produce(self, topic: str, value: bytes | None, key: object, on_delivery: Callable[..., None]) -> None:
        if self.full:
            self.full -= 1
            raise BufferError
        if self.error is None:
            self.sent.append(Sent(topic, key, value))
        on_delivery(self.error, None)

    def poll(self, _seconds: float) -> int:
        return 0

    def flush(self, _seconds: float) -> int:
        return 0


class MemoryMessage(NamedTuple):
    """confluent_kafka.Message's methods."""

    of_topic: str
    of_key: bytes | None
    of_value: bytes | None
    at: int = 0
    problem: KafkaError | None = None

    def topic(self) -> str:
        return self.of_topic

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes | None:
        return self.of_key

    def value(self) -> bytes | None:
        return self.of_value

    def error(self) -> KafkaError | None:
        return self.problem


class MemoryConsumer:
    """Gives the messages of `coming`. `stored`: the offsets of what is processed."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.coming: deque[MemoryMessage] = deque()
        self.topics: list[str] = []
        self.stored: list[tuple[str, int]] = []
        self.is_lost = False  # whether its partitions are another's
        self.is_closed = False
        self._taken: dict[int, MemoryMessage] = {}

    def subscribe(self, topics: list[str]) -> None:
        self.topics = topics

    def unsubscribe(self) -> None:
        self.topics = []

    def poll(self, _seconds: float) -> MemoryMessage | None:
        if not self.coming:
            return None
        message = self.coming.popleft()
        self._taken[message.at] = message
        return message

    def store_offsets(self, message: MemoryMessage) -> None:
        self._check_owned()
        self.stored.append((message.of_topic, message.at))

    def seek(self, place: TopicPartition) -> None:
        self._check_owned()
        self.coming.appendleft(self._taken[place.offset])

    def commit(self, *, asynchronous: bool) -> None:
        assert not asynchronous
        if not self.stored:
            raise KafkaException(KafkaError(KafkaError._NO_OFFSET))

    def close(self) -> None:
        self.is_closed = True

    def _check_owned(self) -> None:
        if self.is_lost:
            raise KafkaException(KafkaError(KafkaError._STATE))
