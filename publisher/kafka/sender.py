"""Sends messages: an idempotent producer with a bounded queue."""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, Producer

from cdc_program.kafka import LIBRDKAFKA_LOGGER, client_config
from publisher.kafka.errors import kafka_error

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

    from cdc_program.errors import CdcError
    from cdc_program.settings import KafkaSettings
    from publisher.inflight import PendingMessages

MOST_MESSAGE_BYTES = 64 * 1024 * 1024  # for nodes with larger segments: up to here max.message.bytes may be raised
QUEUE_BYTES = 16 * 1024 * 1024  # queued for Kafka: the two limits bound the publisher's memory
QUEUE_MESSAGES = 10_000  # small messages; each takes 0.7 kB with its bookkeeping
METADATA_MS = 60_000  # keys use a topic's new partitions after this time; a reshard takes longer by it


class Sender:
    """Sends messages and counts their acknowledgements. The queue holds at most QUEUE_BYTES; a larger message is sent
    alone. librdkafka's own limit would never accept that message and would report a full queue each time.

    `acknowledged`: the number of messages; `latency_seconds`: the sum of their times from send to acknowledgement;
    `last_sent`: the monotonic time of the last acknowledged message of each (topic, partition).
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._failure: CdcError | None = None
        self._now = monotonic()
        self._bytes = 0
        self.acknowledged = 0
        self.latency_seconds = 0.0
        self.last_sent: dict[tuple[str, int], float] = {}
        self._producer = Producer(
            {
                **client_config(settings),
                "enable.idempotence": True,
                "acks": "all",
                "compression.type": "lz4",
                "linger.ms": 5,
                "partitioner": "murmur2",  # of the key, as Kafka's Java client
                "topic.metadata.refresh.interval.ms": METADATA_MS,
                "allow.auto.create.topics": False,  # a deleted topic would return with the broker's default settings
                "message.max.bytes": MOST_MESSAGE_BYTES,
                "message.timeout.ms": 0,  # keep messages however long Kafka is away
                "queue.buffering.max.kbytes": (QUEUE_BYTES + MOST_MESSAGE_BYTES) // 1024,
                "queue.buffering.max.messages": QUEUE_MESSAGES,
                "log.connection.close": False,
                "error_cb": self._on_error,
                "logger": LIBRDKAFKA_LOGGER,
            }
        )

    def __len__(self) -> int:
        """The number of messages that are not acknowledged."""
        return len(self._producer)

    def send(self, topic: str, key: bytes, value: bytes, pending: PendingMessages) -> bool:
        """Queue a message; False if the queue is full: call `poll` and retry."""
        return self._enqueue(topic, value, pending, key=key)

    def send_to_raw_partition(
        self, topic: str, raw_partition: int, value: bytes, pending: PendingMessages | None = None
    ) -> bool:
        """Queue a message without a key; False if the queue is full."""
        return self._enqueue(topic, value, pending, partition=raw_partition)

    def _enqueue(self, topic: str, value: bytes, pending: PendingMessages | None, **target: Any) -> bool:  # noqa: ANN401 - produce's own arguments
        if self._bytes and self._bytes + len(value) > QUEUE_BYTES:
            return False
        try:
            self._producer.produce(topic, value, on_delivery=partial(self._on_delivery, pending, len(value)), **target)
        except BufferError:
            return False
        except KafkaException as error:
            raise kafka_error(error.args[0], self._settings, topic) from error
        self._bytes += len(value)
        return True

    def refresh_metadata(self, topic: str) -> None:
        """Make the producer know the topic's partitions: it refuses messages to a partition that it does not know yet.
        May be called from any thread; CdcError KAFKA_UNREACHABLE.
        """
        try:
            self._producer.list_topics(topic, self._settings.connect_timeout_seconds)
        except KafkaException as error:
            raise kafka_error(error.args[0], self._settings, topic) from error

    def poll(self, seconds: float) -> None:
        """Handle acknowledgements; return after the first ones, or after `seconds`. CdcError if Kafka refused a
        message.
        """
        self._now = monotonic()
        self._producer.poll(seconds)
        if self._failure is not None:
            raise self._failure

    def flush(self, seconds: float) -> None:
        """Wait for all acknowledgements, for at most `seconds`."""
        self._producer.flush(seconds)

    def _on_delivery(
        self, pending: PendingMessages | None, size: int, error: KafkaError | None, message: Message
    ) -> None:
        self._bytes -= size
        if error is not None:
            self._failure = self._failure or kafka_error(error, self._settings, message.topic() or "")
            return
        self.acknowledged += 1
        self.latency_seconds += message.latency() or 0.0
        self.last_sent[message.topic() or "", message.partition() or 0] = self._now
        if pending is not None:
            pending.acknowledge()

    def _on_error(self, error: KafkaError) -> None:
        """librdkafka recovers from all but fatal errors."""
        if error.fatal():
            self._failure = self._failure or kafka_error(error, self._settings)
