"""Sends messages: an idempotent producer with a bounded queue."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaError, KafkaException

from cdc_common.clients.kafka import ClientConfig, client_config
from cdc_common.errors.codes import CdcError
from publisher.inflight import PendingMessages
from publisher.kafka.errors import error_at
from publisher.kafka.producers import BY_KEY, open_producer

if TYPE_CHECKING:
    from cdc_common.settings import KafkaSettings
    from cdc_native.formats.batches import Batch
    from publisher.kafka.producers import Report

MOST_MESSAGE_BYTES = 64 * 1024 * 1024  # for nodes with larger segments: up to here max.message.bytes may be raised
QUEUE_BYTES = 16 * 1024 * 1024  # queued for Kafka: the two limits bound the publisher's memory
QUEUE_MESSAGES = 10_000  # small messages; each takes 0.7 kB with its bookkeeping
_FATAL = "_FATAL"
_LOGIN_REFUSED = {"_AUTHENTICATION", "_ALL_BROKERS_DOWN"}
METADATA_MS = 60_000  # keys use a topic's new partitions after this time; a reshard takes longer by it


class Refusal(NamedTuple):
    """Messages that Kafka has refused."""

    # The messages that were sent together; None for heartbeats.
    pending: PendingMessages | None
    # How many of them Kafka has refused.
    messages: int
    # Their topic.
    topic: str
    # The error.
    error: CdcError
    # Whether they are larger than Kafka takes.
    is_too_large: bool


class Sender:
    """Sends messages and counts their acknowledgements. The queue holds at most QUEUE_BYTES; a larger message is sent
    alone. librdkafka's own limit would never accept that message and would report a full queue each time.

    `acknowledged`: the number of messages; `latency_seconds`: the sum of their times from send to acknowledgement;
    `last_sent`: the monotonic time of the last acknowledged message of each (topic, partition).

    keeps_refusals: a refused message is no error of the sender: `take_refusals` returns it, and its `pending` keeps it
    until somebody acknowledges it.
    """

    def __init__(self, settings: KafkaSettings, *, keeps_refusals: bool = False) -> None:
        self._settings = settings
        self._keeps_refusals = keeps_refusals
        self._refusals: list[Refusal] = []
        self._failure: CdcError | None = None
        self._losses: dict[str, KafkaError] = {}  # of connections, since the last acknowledgement, by name
        self.acknowledged = 0
        self.latency_seconds = 0.0
        self.last_sent: dict[tuple[str, int], float] = {}
        config = ClientConfig(
            {
                **client_config(settings),
                "enable.idempotence": True,
                "acks": "all",
                "compression.type": "lz4",
                "linger.ms": 5,
                "partitioner": "murmur2",  # of the key, as Kafka's Java client
                "topic.metadata.refresh.interval.ms": METADATA_MS,
                "message.max.bytes": MOST_MESSAGE_BYTES,
                "message.timeout.ms": 0,  # keep messages however long Kafka is away
                "queue.buffering.max.kbytes": (QUEUE_BYTES + MOST_MESSAGE_BYTES) // 1024,
                "queue.buffering.max.messages": QUEUE_MESSAGES,
                "log.connection.close": False,
            }
        )
        self._producer = open_producer(config, QUEUE_BYTES)

    def __len__(self) -> int:
        """The number of messages that are not acknowledged."""
        return len(self._producer)

    def send(self, topic: str, key: bytes, value: bytes, pending: PendingMessages) -> bool:
        """Queue a message; False if the queue is full: call `poll` and retry."""
        return self._enqueue(topic, BY_KEY, key, value, pending)

    def send_to_raw_partition(
        self, topic: str, raw_partition: int, value: bytes, pending: PendingMessages | None = None
    ) -> bool:
        """Queue a message without a key; False if the queue is full."""
        return self._enqueue(topic, raw_partition, None, value, pending)

    def send_batch(self, topics: tuple[str, ...], batch: Batch, first: int, pending: PendingMessages) -> int:
        """Queue the messages of a batch from the index `first` on, each to the one of `topics` at its table's place;
        the index of the first that finds no room: call `poll` and go on there.
        """
        while True:
            try:
                return self._producer.send_batch(topics, batch, first, pending)
            except KafkaException as error:
                problem, topic, index = error.args
                self._refuse(problem, topic, pending)
                first = index + 1

    def _enqueue(
        self, topic: str, raw_partition: int, key: bytes | None, value: bytes, pending: PendingMessages | None
    ) -> bool:
        try:
            return self._producer.send(topic, raw_partition, key, value, pending)
        except KafkaException as error:
            self._refuse(error.args[0], topic, pending)
            return True

    def _refuse(self, problem: KafkaError, topic: str, pending: PendingMessages | None, count: int = 1) -> None:
        """A message was refused, by the client or by Kafka. CdcError unless refusals are kept; also if no message can
        be sent any more.
        """
        error = error_at(self._settings, problem, topic)
        if not self._keeps_refusals or problem.name() == _FATAL:
            raise error
        is_too_large = problem.code() == KafkaError.MSG_SIZE_TOO_LARGE
        self._refusals.append(Refusal(pending, count, topic, error, is_too_large))

    def take_refusals(self, topic: str = "") -> list[Refusal]:
        """Return the messages that were refused since the last call, of one topic or of all."""
        refusals, self._refusals = self._refusals, []
        if not topic:
            return refusals
        self._refusals = [refusal for refusal in refusals if refusal.topic != topic]
        return [refusal for refusal in refusals if refusal.topic == topic]

    def refresh_metadata(self, topic: str) -> None:
        """Make the producer know the topic's partitions: it refuses messages to a partition that it does not know yet.
        May be called from any thread; CdcError KAFKA_UNREACHABLE.
        """
        try:
            self._producer.refresh_metadata(topic, self._settings.connect_timeout_seconds)
        except KafkaException as error:
            raise error_at(self._settings, error.args[0], topic) from error

    def poll(self, seconds: float) -> None:
        """Handle acknowledgements; return after the first ones, or after `seconds`. CdcError if Kafka refused a
        message and refusals are not kept, or refuses the login while no broker is left that accepts it.
        """
        self._take(self._producer.poll(seconds), monotonic())
        if self._failure is not None:
            raise self._failure

    def flush(self, seconds: float) -> None:
        """Wait for all acknowledgements, for at most `seconds`."""
        deadline = monotonic() + seconds
        while len(self) and (rest := deadline - monotonic()) > 0:
            self._take(self._producer.poll(rest), monotonic())

    def _take(self, report: Report, now: float) -> None:
        self.acknowledged += report.acknowledged
        self.latency_seconds += report.seconds
        for place in report.places:
            self.last_sent[place] = now
        for pending, count in report.pendings:
            pending.acknowledge(count)
        if report.acknowledged:
            self._losses.clear()
        for refused, count, error, topic in report.refused:
            try:
                self._refuse(error, topic, refused, count)
            except CdcError as problem:
                self._failure = self._failure or problem
        for error in report.errors:
            if error.fatal():  # librdkafka recovers from all others
                self._failure = self._failure or error_at(self._settings, error)
            else:
                self._losses[error.name()] = error
        # It tries a refused login again, too. But the login of the settings file may be a new one.
        if self._losses.keys() >= _LOGIN_REFUSED:
            self._failure = self._failure or error_at(self._settings, self._losses["_AUTHENTICATION"])
