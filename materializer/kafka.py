"""All of the materializer's Kafka: the partitions' transactional producers, the group's positions, topics.

A task lets KafkaException through, for Spark to run it again; what the driver calls raises CdcError.
"""

from __future__ import annotations

import faulthandler
import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own __all__ names only the first
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from cdc_program.errors import CdcError, Code
from cdc_program.kafka import GROUP_REFUSED, WITHOUT_GROUP, client_config
from materializer.position import Position, RawPartition, decode, encode
from materializer.row_updates import RawRecord

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from confluent_kafka import Message as KafkaClientMessage

    from cdc_program.settings import KafkaSettings
    from materializer.task import Message

_TIMEOUT = 30.0
_BATCH_BYTES = 1_000_000
_READ_AHEAD_KBYTES = 4096  # of one raw partition; several are read at a time
_DEAD_LETTER_BYTES = (64 << 20) + 100_000  # a message of materializer.large_messages' bound
_QUICK = {
    # Measured: a new client is ready in 15 instead of 55 ms. While a broker is down the waits grow to the second.
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 1000,
    "retry.backoff.ms": 10,
    "topic.metadata.refresh.fast.interval.ms": 10,
}
_MAY_GO_AWAY = {
    KafkaError._TRANSPORT,  # noqa: SLF001 - librdkafka's own codes begin with an underscore
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
    KafkaError._WAIT_COORD,  # noqa: SLF001
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - a broker that has just started may not know its partitions yet
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.NOT_CONTROLLER,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
}

_FENCED = {
    KafkaError._FENCED,  # noqa: SLF001
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
}


class ProducerLimits(NamedTuple):
    """transaction_seconds: after so long the brokers abort a transaction. max_message_bytes: of what is sent to."""

    transaction_seconds: float
    max_message_bytes: int


DEFAULT_LIMITS = ProducerLimits(60.0, 1_048_588)


class PartitionProducer:
    """The transactional producer of one raw partition: making it fences the one before, wherever that is."""

    def __init__(
        self,
        settings: KafkaSettings,
        group: str,
        partition: RawPartition,
        consumer: Consumer,
        limits: ProducerLimits = DEFAULT_LIMITS,
    ) -> None:
        self._partition = partition
        self._consumer = consumer
        self._timeout = limits.transaction_seconds
        self._begun = 0.0
        self._producer = Producer(
            {
                **client_config(settings),
                **_QUICK,
                "transactional.id": f"{group}/{partition}",
                "compression.type": "lz4",
                "linger.ms": 5,
                "queue.buffering.max.messages": 1_000_000,
                "queue.buffering.max.kbytes": 131_072,
                "transaction.timeout.ms": int(limits.transaction_seconds * 1000),
                "message.max.bytes": 1_000_000_000,  # its own limit, before compression, is not the topic's
                "batch.size": min(_BATCH_BYTES, limits.max_message_bytes),
            }
        )
        try:
            self._producer.init_transactions(_TIMEOUT)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
                raise _timeout_refused(limits.transaction_seconds, "") from error
            raise

    def begin(self) -> None:
        self._begun = time.monotonic()
        self._producer.begin_transaction()

    def send(self, message: Message) -> None:
        """Queue a message; waits where the queue is full."""
        topic, partition, key, value, headers = message
        while True:
            try:
                self._producer.produce(topic, value, key, partition, headers=list(headers))
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def send_position(self, position: Position) -> None:
        """Make the position part of the transaction."""
        self.send_positions({self._partition: position})

    def send_positions(self, positions: Mapping[RawPartition, Position]) -> None:
        """Make several partitions' positions part of the transaction. Nothing fences the others' own producers."""
        offsets = [
            TopicPartition(*each, position.offset, metadata=encode(position)) for each, position in positions.items()
        ]
        with self._explained(), _watched():
            self._producer.send_offsets_to_transaction(offsets, self._consumer.consumer_group_metadata(), _TIMEOUT)

    def commit(self) -> None:
        """Make messages and position true. If this raises, a new producer and the position tell what became of it.

        CdcError(MESSAGE_TOO_LARGE) for a message that the brokers refuse.
        """
        with self._explained(), _watched():
            self._producer.commit_transaction(_TIMEOUT)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Says why the transaction has failed, where that is known: a refused message, or its timeout."""
        try:
            yield
        except KafkaException as error:
            if error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
                raise _refused_as_too_large(error.args[0]) from error
            if time.monotonic() - self._begun > self._timeout:
                raise TimeoutError(
                    f"{Code.TRANSACTION_TIMEOUT.text} a transaction of {self._partition} was open for "
                    f"{time.monotonic() - self._begun:.0f} s and was given up: {error.args[0].str()}"
                ) from error
            raise

    def abandon(self) -> None:
        """Abort what is open, as well as that goes now; the partition's next producer makes sure."""
        try:
            self._producer.abort_transaction(5.0)
        except KafkaException:
            return


class GroupPositions:
    """The committed positions of the consumer group.

    `stable` waits for transactions in doubt, those of a killed task up to their timeout; else what was true before them
    is given. A task asks for it after its producer has ended the partition's, so it does not wait.
    """

    def __init__(self, settings: KafkaSettings, group: str, *, stable: bool = True) -> None:
        self.consumer = Consumer(
            {
                **client_config(settings),
                **_QUICK,
                "group.id": group,
                "isolation.level": "read_committed" if stable else "read_uncommitted",
                "enable.auto.commit": False,
            }
        )

    def read(self, partitions: Collection[RawPartition]) -> dict[RawPartition, Position | None]:
        """The position of each partition, None where nothing is committed.

        KafkaException, or CdcError (STATE_MISMATCH, STATE_FORMAT) for one that this program has not committed.
        """
        if not partitions:
            return {}
        found = self.consumer.committed([TopicPartition(*each) for each in partitions], _TIMEOUT)
        return dict(_position_of(each) for each in found)


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
            topic = self._consumer.list_topics(self._topic, _TIMEOUT).topics[self._topic]
            if topic.error is not None:
                return {}
            self._next = dict.fromkeys(topic.partitions, 0)
            self._consumer.assign([TopicPartition(self._topic, each, OFFSET_BEGINNING) for each in self._next])
        ends = {}
        for partition in self._next:
            _, ends[partition] = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), _TIMEOUT)
        return ends


def read_raw(settings: KafkaSettings, partition: RawPartition, first: int, end: int) -> Iterator[RawRecord]:
    """The records of a raw partition with offsets in [first, end), fetched as they are asked for."""
    if first >= end:
        return
    config = {**client_config(settings), **_QUICK, **WITHOUT_GROUP, "queued.max.messages.kbytes": _READ_AHEAD_KBYTES}
    consumer = Consumer({**config, "auto.offset.reset": "error"})
    try:
        consumer.assign([TopicPartition(*partition, first)])
        waited_until = time.monotonic() + _TIMEOUT
        while first < end:
            for message in consumer.consume(1000, 0.5):
                error = message.error()
                if error is not None:
                    if error.name() == GROUP_REFUSED or error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                        continue
                    raise KafkaException(error)
                record = _raw_record(message)
                if record.offset >= end:
                    return
                first, waited_until = record.offset + 1, time.monotonic() + _TIMEOUT
                yield record
            if time.monotonic() > waited_until:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001
    finally:
        consumer.close()


def _raw_record(message: KafkaClientMessage) -> RawRecord:
    offset = message.offset()
    assert offset is not None
    return RawRecord(bytes(message.key() or b""), bytes(message.value() or b""), offset, message.timestamp()[1])


class Topics:
    """Questions about topics, and the making of change topics."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._admin = AdminClient({**client_config(settings), **_QUICK})  # type: ignore[dict-item]

    def partition_counts(self) -> dict[str, int]:
        """The number of partitions of each topic."""
        with driver_errors("list the topics"):
            topics = self._admin.list_topics(timeout=self._settings.connect_timeout_seconds).topics
            return {name: len(topic.partitions) for name, topic in topics.items() if topic.error is None}

    def ids(self, topics: Collection[str]) -> dict[str, str]:
        """The id of each topic, which a topic that is made anew under its name does not have."""
        if not topics:
            return {}
        with driver_errors("describe the raw topics"):
            described = self._admin.describe_topics(TopicCollection(list(topics)))
            return {name: str(found.result(_TIMEOUT).topic_id) for name, found in described.items()}

    def matching(self, pattern: str) -> list[str]:
        """The topics whose names match a regular expression."""
        return [name for name in self.partition_counts() if re.match(pattern, name)]

    def bounds(self, partitions: Sequence[RawPartition]) -> dict[RawPartition, tuple[int, int]]:
        """The first offset that is there and the next one, of each partition."""
        with driver_errors("list the offsets of the raw topics"):
            first = self._list_offsets(partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
            following = self._list_offsets(partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]
            return {each: (first[each], following[each]) for each in partitions}

    def max_message_bytes(self, topics: Iterable[str]) -> int:
        """The smallest max.message.bytes of the topics."""
        return min(int(self._settings_of(topic)["max.message.bytes"].value) for topic in topics)

    def check_transaction_timeout(self, seconds: float) -> None:
        """CdcError(TRANSACTION_TIMEOUT) if the brokers allow less. Who may not ask them learns it from the tasks."""
        with driver_errors("list the brokers"):
            brokers = self._admin.list_topics(timeout=self._settings.connect_timeout_seconds).brokers
        resource = ConfigResource(ResourceType.BROKER, str(next(iter(brokers))))
        try:
            settings: dict[str, Any] = self._admin.describe_configs([resource])[resource].result(_TIMEOUT)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.CLUSTER_AUTHORIZATION_FAILED:
                raise
            return
        allowed_ms = int(settings["transaction.max.timeout.ms"].value)
        if seconds * 1000 > allowed_ms:
            raise _timeout_refused(seconds, f" ({allowed_ms / 1000:g} s)")

    def check_raw_topic(self, topic: str) -> None:
        """CdcError(TOPIC_SETTINGS) unless the topic's timestamps are the brokers'."""
        settings = self._settings_of(topic)
        if settings["message.timestamp.type"].value != "LogAppendTime":
            raise CdcError(
                Code.TOPIC_SETTINGS,
                f"The raw topic {topic} has message.timestamp.type={settings['message.timestamp.type'].value}; time "
                "must be the brokers'.",
                f"kafka-configs --alter --entity-type topics --entity-name {topic} "
                "--add-config message.timestamp.type=LogAppendTime",
            )

    def make_change_topic(self, topic: str) -> int:
        """The number of partitions of the topic, which is made if it is not there."""
        lag_ms = str(self._settings.min_compaction_lag_hours * 3_600_000)
        config = {"cleanup.policy": "compact", "min.compaction.lag.ms": lag_ms}
        return self._make(topic, self._settings.change_partitions, config)

    def make_dead_letter_topic(self, topic: str) -> None:
        """Unless it is there. Nothing in it is deleted by age."""
        config = {"cleanup.policy": "delete", "retention.ms": "-1", "max.message.bytes": str(_DEAD_LETTER_BYTES)}
        self._make(topic, 1, config)

    def _make(self, topic: str, partitions: int, config: dict[str, str]) -> int:
        known = self.partition_counts().get(topic)
        if known is not None:
            return known
        new = NewTopic(topic, partitions, self._settings.replication_factor, config=config)
        with driver_errors(f"make the topic {topic}"):
            try:
                self._admin.create_topics([new])[topic].result(_TIMEOUT)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
            return self._wait_for(topic)

    def _settings_of(self, topic: str) -> dict[str, Any]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        with driver_errors(f"read the settings of {topic}"):
            found: dict[str, Any] = self._admin.describe_configs([resource])[resource].result(_TIMEOUT)
        return found

    def _wait_for(self, topic: str) -> int:
        deadline = time.monotonic() + _TIMEOUT
        while time.monotonic() < deadline:
            count = self.partition_counts().get(topic)
            if count:
                return count
            time.sleep(0.05)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001

    def _list_offsets(self, partitions: Sequence[RawPartition], spec: OffsetSpec) -> dict[RawPartition, int]:
        if not partitions:
            return {}
        asked = {TopicPartition(*each): spec for each in partitions}
        answers: dict[TopicPartition, Future[Any]] = self._admin.list_offsets(asked)
        return {RawPartition(at.topic, at.partition): answer.result(_TIMEOUT).offset for at, answer in answers.items()}


def send_all(settings: KafkaSettings, messages: Iterable[Message]) -> None:
    """Send messages and wait until the brokers have them."""
    errors: list[KafkaError] = []
    producer = Producer({**client_config(settings), **_QUICK, "enable.idempotence": True, "compression.type": "lz4"})
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
        if producer.flush(_TIMEOUT):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001
        if errors:
            raise KafkaException(errors[0])


@contextmanager
def _watched() -> Iterator[None]:
    """Ends the process where librdkafka waits beyond its timeout, as it does when the coordinator's broker is killed:
    what became of the transaction is for the partition's next task to find out.
    """
    faulthandler.dump_traceback_later(2 * _TIMEOUT, exit=True, file=2)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@contextmanager
def driver_errors(doing: str) -> Iterator[None]:
    """Turns KafkaException into CdcError: KAFKA_UNREACHABLE where it may go away, KAFKA_REFUSED where it says no."""
    try:
        yield
    except KafkaException as exception:
        error: KafkaError = exception.args[0]
        if error.code() in _MAY_GO_AWAY:
            raise CdcError(
                Code.KAFKA_UNREACHABLE,
                f"Kafka does not answer: cannot {doing}: {error.str()}.",
                "Start the brokers, or correct kafka.bootstrap_servers and its security settings.",
            ) from exception
        raise CdcError(
            Code.KAFKA_REFUSED,
            f"Kafka refuses to {doing}: {error.str()}.",
            "Grant the materializer's user the rights that docs/security.md lists.",
        ) from exception


@contextmanager
def command_errors(doing: str) -> Iterator[None]:
    """As `driver_errors`, and CdcError(STATE_MISMATCH) where another process has fenced this one."""
    with driver_errors(doing):
        try:
            yield
        except KafkaException as exception:
            if exception.args[0].code() not in _FENCED:
                raise
            raise CdcError(
                Code.STATE_MISMATCH,
                f"Another process has taken a raw partition over: cannot {doing}.",
                "Stop the materializer, and any other command of this group; then run it again.",
            ) from exception


def _timeout_refused(seconds: float, allowed: str) -> CdcError:
    return CdcError(
        Code.TRANSACTION_TIMEOUT,
        f"materializer.transaction_timeout_seconds is {seconds:g}; that is more than the brokers' "
        f"transaction.max.timeout.ms{allowed}.",
        "Set it to less, or raise transaction.max.timeout.ms on every broker.",
    )


def _refused_as_too_large(error: KafkaError) -> CdcError:
    return CdcError(
        Code.MESSAGE_TOO_LARGE,
        f"The brokers refuse a message as too large: {error.str()}. The topic's max.message.bytes has become smaller "
        "since the start, or the topic is compressed otherwise than the producer does it.",
        "Set the topic's max.message.bytes as it was, and its compression.type to producer; start again.",
    )


def _kafka_message(message: KafkaClientMessage) -> KafkaMessage:
    key, value = message.key(), message.value()
    headers: Any = message.headers() or []  # a list, whatever its stub says
    return KafkaMessage(None if key is None else bytes(key), None if value is None else bytes(value), list(headers))


def _position_of(committed: TopicPartition) -> tuple[RawPartition, Position | None]:
    if committed.error is not None:
        raise KafkaException(committed.error)
    where = RawPartition(committed.topic, committed.partition)
    if committed.offset == OFFSET_INVALID:
        return where, None
    return where, decode(committed.offset, committed.metadata, where)
