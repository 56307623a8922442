"""Idempotent Kafka producers with one interface: the native core's, and confluent-kafka's where there is no core.

Both are the same librdkafka with the same properties. confluent-kafka's makes a callback for each message.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import structlog
from confluent_kafka import KafkaError, KafkaException, cimpl
from confluent_kafka import Producer as Client

import cdc_native
from cdc_common.clients.kafka import LIBRDKAFKA_LOGGER, log_line
from publisher.inflight import PendingMessages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import Message

    from cdc_native.formats.batches import Batch

BY_KEY = -1  # librdkafka's RD_KAFKA_PARTITION_UA: the partitioner chooses

log = structlog.get_logger(__name__)


class Report(NamedTuple):
    """The events since the last report."""

    # how many messages of each were acknowledged
    pendings: list[tuple[PendingMessages, int]]
    # how many in all
    acknowledged: int
    # the sum of their times from send to acknowledgement
    seconds: float
    # the (topic, partition) that they are in
    places: list[tuple[str, int]]
    # the client's
    errors: list[KafkaError]
    # how many messages of each pending (None: of heartbeats) were refused, the error, and the topic
    refused: list[tuple[PendingMessages | None, int, KafkaError, str]]


class Producer(Protocol):
    """KafkaException from all methods but `poll`; that of `send_batch` has the topic as second argument, and the index
    of the message as third.
    """

    def __len__(self) -> int:
        """The number of messages that are not acknowledged."""

    def send(
        self, topic: str, partition: int, key: bytes | None, value: bytes, pending: PendingMessages | None
    ) -> bool:
        """Queue a message; False if the queue is full. `partition` may be BY_KEY."""

    def send_batch(self, topics: tuple[str, ...], batch: Batch, first: int, pending: PendingMessages) -> int:
        """Queue the messages of a batch from the index `first` on; the index of the first that finds no room.
        `topics`: by the table's place.
        """

    def poll(self, seconds: float) -> Report:
        """Wait up to `seconds` for the first thing to report."""

    def refresh_metadata(self, topic: str, seconds: float) -> None:
        """Learn the topic's partitions. May be called by any thread."""


def open_producer(config: Mapping[str, object], most_bytes: int) -> Producer:
    """A producer whose queue holds `most_bytes`; a larger message is sent alone."""
    if cdc_native.is_enabled():
        try:
            return NativeProducer(config, most_bytes)
        except OSError as error:
            log.warning("the native producer cannot be used", reason=str(error))
    return ConfluentProducer(config, most_bytes)


class NativeProducer:
    """The core's producer. OSError if confluent-kafka's librdkafka is not found."""

    def __init__(self, config: Mapping[str, object], most_bytes: int) -> None:
        from cdc_native.kafka.producer import Producer, SendError  # noqa: PLC0415 - it may not be compiled

        self._send_error = SendError
        self._producer = Producer(cimpl.__file__, config, most_bytes, log_line)

    def __len__(self) -> int:
        return len(self._producer)

    def send(
        self, topic: str, partition: int, key: bytes | None, value: bytes, pending: PendingMessages | None
    ) -> bool:
        try:
            return self._producer.send(topic, partition, key, value, pending)
        except self._send_error as error:
            raise KafkaException(KafkaError(error.code)) from error

    def send_batch(self, topics: tuple[str, ...], batch: Batch, first: int, pending: PendingMessages) -> int:
        try:
            return self._producer.send_batch(topics, batch, first, pending)
        except self._send_error as error:
            raise KafkaException(KafkaError(error.code), error.topic, error.index) from error

    def poll(self, seconds: float) -> Report:
        pendings, acknowledged, latency, places, errors, refused = self._producer.poll(seconds)
        found = [KafkaError(code, text or None, is_fatal) for code, text, is_fatal in errors]
        refusals = [(pending, count, KafkaError(code), topic) for pending, count, code, topic in refused]
        return Report(pendings, acknowledged, latency, places, found, refusals)

    def refresh_metadata(self, topic: str, seconds: float) -> None:
        try:
            self._producer.refresh_metadata(topic, seconds)
        except self._send_error as error:
            raise KafkaException(KafkaError(error.code)) from error


class ConfluentProducer:
    """confluent-kafka's producer."""

    def __init__(self, config: Mapping[str, object], most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._report = Report([], 0, 0.0, [], [], [])
        self._client = Client({**config, "error_cb": self._on_error, "logger": LIBRDKAFKA_LOGGER})

    def __len__(self) -> int:
        return len(self._client)

    def send(
        self, topic: str, partition: int, key: bytes | None, value: bytes, pending: PendingMessages | None
    ) -> bool:
        if self._bytes and self._bytes + len(value) > self._most_bytes:
            return False
        on_delivery = partial(self._on_delivery, pending, len(value))
        try:
            self._client.produce(topic, value, key, partition, on_delivery=on_delivery)
        except BufferError:
            return False
        self._bytes += len(value)
        return True

    def send_batch(self, topics: tuple[str, ...], batch: Batch, first: int, pending: PendingMessages) -> int:
        for index in range(first, len(batch)):
            table, key, value = batch.message(index)
            try:
                is_queued = self.send(topics[table], BY_KEY, key, value, pending)
            except KafkaException as error:
                raise KafkaException(error.args[0], topics[table], index) from error
            if not is_queued:
                return index
        return len(batch)

    def poll(self, seconds: float) -> Report:
        self._client.poll(seconds)
        report, self._report = self._report, Report([], 0, 0.0, [], [], [])
        return report

    def refresh_metadata(self, topic: str, seconds: float) -> None:
        self._client.list_topics(topic, seconds)

    def _on_delivery(
        self, pending: PendingMessages | None, size: int, error: KafkaError | None, message: Message
    ) -> None:
        self._bytes -= size
        report = self._report
        topic, partition = message.topic() or "", message.partition() or 0
        if error is not None:
            report.refused.append((pending, 1, error, topic))
            return
        if pending is not None:
            report.pendings.append((pending, 1))
        report.places.append((topic, partition))
        self._report = report._replace(
            acknowledged=report.acknowledged + 1, seconds=report.seconds + (message.latency() or 0.0)
        )

    def _on_error(self, error: KafkaError) -> None:
        self._report.errors.append(error)
