"""The transactional producers of shares and commands, and sending without a transaction."""

from __future__ import annotations

import faulthandler
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

import cdc_native
from cdc_common.clients.kafka import client_config
from cdc_common.clients.kafka_error_table import Kind
from cdc_common.clients.kafka_errors import kafka_error, known_error
from cdc_common.errors.codes import CdcError, Code
from stream_runtime.kafka.clients import QUICK, TIMEOUT, driver_errors, timeout_refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cdc_common.settings import KafkaSettings
    from stream_runtime.exactly_once.commits import StoredOffset
    from stream_runtime.exactly_once.position import Position
    from stream_runtime.kafka.native_clients import NativeConsumer
    from stream_runtime.records import ChangeRun, Message, SourcePartition
    from stream_runtime.source_batch import MessageGroups

IS_NATIVE = cdc_native.is_enabled()
_BATCH_BYTES = 1_000_000
_INIT_SECONDS = 0.02
_LOOK_SECONDS = 5.0


class ProducerSettings(NamedTuple):
    """The settings of a producer."""

    # The timeout after which the brokers abort a transaction.
    transaction_seconds: float
    # The smallest limit of the topics that are sent to.
    max_message_bytes: int
    # Whether the native core's producer sends; otherwise confluent-kafka's.
    is_native: bool = IS_NATIVE


PRODUCER_DEFAULTS = ProducerSettings(60.0, 1_048_588)


class FencingProducer:
    """A transactional producer. Creating it fences the previous one of the same name in the group, in any process."""

    def __init__(
        self,
        settings: KafkaSettings,
        group: str,
        name: str,
        consumer: Consumer | NativeConsumer,
        own: ProducerSettings = PRODUCER_DEFAULTS,
    ) -> None:
        """name: of a share (Share.id), or of a command. consumer: one of the group, whose metadata confluent-kafka's
        producer takes; the core's needs only the group's name.
        """
        self._name = name
        self._consumer = consumer
        self._timeout = own.transaction_seconds
        self._begun = 0.0
        self._topics: set[str] = set()  # that the open transaction sends to
        self._group = group
        self._is_native = own.is_native
        self._producer = _open_producer(
            settings,
            {
                **client_config(settings),
                **QUICK,
                "transactional.id": f"{group}/{name}",
                "compression.type": "lz4",
                "linger.ms": 5,
                "queue.buffering.max.messages": 1_000_000,
                "queue.buffering.max.kbytes": 131_072,
                "transaction.timeout.ms": int(own.transaction_seconds * 1000),
                "message.max.bytes": 1_000_000_000,  # the client's limit is before compression
                "batch.size": min(_BATCH_BYTES, own.max_message_bytes),
            },
            is_native=own.is_native,
        )
        self._init(time.monotonic() + TIMEOUT)

    def _init(self, deadline: float) -> None:
        """Retries with a short timeout. On each call librdkafka looks for the coordinator at once; within a call only
        after half a second if it is not connected yet (measured: the median falls from 510 ms to 22 ms).
        """
        while True:
            try:
                self._producer.init_transactions(_INIT_SECONDS)
            except KafkaException as exception:
                error: KafkaError = exception.args[0]
                if error.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
                    raise timeout_refused(self._timeout, "") from exception
                if not error.retriable() or time.monotonic() > deadline:
                    raise
            else:
                return

    def begin(self) -> None:
        self._begun = time.monotonic()
        self._topics = set()
        self._producer.begin_transaction()

    def send(self, message: Message) -> None:
        """Queue a message; waits while the queue is full."""
        topic, partition, key, value, headers = message
        self._topics.add(topic)
        while True:
            try:
                if headers:
                    self._producer.produce(topic, value, key, partition, headers=list(headers))
                else:  # not with empty headers: they cost as much as the message
                    self._producer.produce(topic, value, key, partition)
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:  # without a context for each message: there are many
                raise self._explanation(error) from error
            else:
                return

    def send_groups(self, messages: MessageGroups) -> None:
        """Queue messages; waits while the queue is full."""
        if not self._is_native:
            for message in messages:
                self.send(message)
            return
        self._topics.update(group.topic for group in messages.groups)
        with self._explained():
            self._producer.send_groups(messages)

    def send_changes(self, run: ChangeRun) -> None:
        """Queue the messages of changes; waits while the queue is full."""
        if not self._is_native:
            for message in run.messages():
                self.send(message)
            return
        self._topics.add(run.topic)
        with self._explained():
            self._producer.send_changes(run)

    def send_positions(self, positions: Mapping[SourcePartition, Position]) -> None:
        """Add positions to the transaction. This fences no producer of another name."""
        self.send_offsets({partition: position.stored() for partition, position in positions.items()})

    def send_offsets(self, offsets: Mapping[SourcePartition, StoredOffset]) -> None:
        """Add offsets to the transaction."""
        sent = [
            TopicPartition(*partition, stored.offset, metadata=stored.metadata) for partition, stored in offsets.items()
        ]
        with self._explained(), _watched():
            self._producer.send_offsets_to_transaction(sent, self._group_metadata(), TIMEOUT)

    def _group_metadata(self) -> Any:  # noqa: ANN401 - each library has its own
        if self._is_native:
            return self._group
        assert isinstance(self._consumer, Consumer)  # the core's is made only where the core sends
        return self._consumer.consumer_group_metadata()

    def commit(self) -> None:
        """Commit messages and position. If this raises, a new producer and the committed position show the outcome.

        CdcError(MESSAGE_TOO_LARGE) for a message that the brokers refuse. ProducerExpiredError if the brokers have
        forgotten the producer.
        """
        with self._explained(), _watched():
            self._producer.commit_transaction(TIMEOUT)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Explains why the transaction has failed, as far as that is known."""
        try:
            yield
        except KafkaException as error:
            raise self._explanation(error) from error

    def _explanation(self, error: KafkaException) -> Exception:
        """A refused message, an expired producer, the timeout, or what else has failed the transaction."""
        cause = self._first_error(error.args[0])
        if cause.code() == KafkaError._TIMED_OUT:  # noqa: SLF001
            cause = self._missing_topic() or cause
        known = known_error(cause)
        if known.kind is Kind.TOO_LARGE:
            return _refused_as_too_large(cause, known.fix)
        if known.kind is Kind.EXPIRED:
            return kafka_error(f"Cannot continue the transactions of {self._name}", cause)
        if time.monotonic() - self._begun > self._timeout:
            return _expired(self._name, time.monotonic() - self._begun, cause)
        return KafkaException(cause)

    def _first_error(self, error: KafkaError) -> KafkaError:
        """The error that has failed the transaction. If that happens while send_offsets_to_transaction waits for a
        broker, librdkafka only answers that the state is wrong, and to a message that it has stopped for good. It names
        the cause when asked to begin a transaction, which it refuses in the state of a failed one.
        """
        if error.code() not in {KafkaError._STATE, KafkaError._FATAL}:  # noqa: SLF001
            return error
        try:
            self._producer.begin_transaction()
        except KafkaException as refusal:
            cause: KafkaError = refusal.args[0]
            return cause
        return error

    def _missing_topic(self) -> KafkaError | None:
        """The error of a topic that is not there any more. librdkafka waits for it for as long as a commit waits."""
        try:
            for topic in sorted(self._topics):
                found = self._producer.list_topics(topic, _LOOK_SECONDS).topics[topic]
                if found.error is not None and known_error(found.error).kind is Kind.TOPIC:
                    return KafkaError(found.error.code(), f"topic {topic}")
        except KafkaException:
            return None
        return None

    def abandon(self) -> None:
        """Abort the open transaction if that works now; the next producer of this name aborts it in any case."""
        try:
            self._producer.abort_transaction(5.0)
        except KafkaException:
            return


def _open_producer(settings: KafkaSettings, properties: Mapping[str, object], *, is_native: bool) -> Any:  # noqa: ANN401 - one of two clients with the same methods
    if is_native:
        from stream_runtime.kafka.native_clients import NativeTransactions  # noqa: PLC0415 - the core may be missing

        return NativeTransactions(properties, settings)
    return Producer(dict(properties))


def send_all(settings: KafkaSettings, messages: Iterable[Message]) -> None:
    """Send messages and wait until the brokers have them."""
    errors: list[KafkaError] = []
    own = {"enable.idempotence": True, "compression.type": "lz4"}
    producer = Producer({**client_config(settings), **QUICK, **own})
    with driver_errors("send messages"):
        for topic, partition, key, value, headers in messages:
            producer.produce(
                topic,
                value,
                key,
                partition,
                headers=list(headers),
                on_delivery=lambda error, _message: errors.append(error) if error else None,
            )
        if producer.flush(TIMEOUT):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001
        if errors:
            raise KafkaException(errors[0])


@contextmanager
def _watched() -> Iterator[None]:
    """Ends the process if librdkafka waits longer than its timeout, as it does when the coordinator's broker is killed.
    The share's next task finds out the transaction's outcome.
    """
    faulthandler.dump_traceback_later(2 * TIMEOUT, exit=True, file=2)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def _refused_as_too_large(error: KafkaError, fix: str) -> CdcError:
    return CdcError(
        Code.MESSAGE_TOO_LARGE,
        f"The brokers refuse a message as too large: {error.str()}. The topic's max.message.bytes was lowered since "
        "the job started, or the topic's compression.type differs from the producer's.",
        fix,
    )


def _expired(name: str, seconds: float, error: KafkaError) -> CdcError:
    return CdcError(
        Code.TRANSACTION_EXPIRED,
        f"A transaction of {name} was open for {seconds:.0f} s, and the brokers have aborted it: {error.str()}.",
        "It runs again. If that does not help, lower chunk_max_bytes and chunk_max_messages in the job's "
        "settings, or raise transaction_timeout_seconds.",
    )
