"""Kafka as the publisher uses it: makes and checks topics, and sends. The only module that imports confluent_kafka."""

from __future__ import annotations

from functools import partial
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, NewTopic, ResourceType

from cdc_program.errors import CdcError, Code
from cdc_program.kafka import GROUP_REFUSED, LIBRDKAFKA_LOGGER, WITHOUT_GROUP, client_config

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet
    from concurrent.futures import Future

    from confluent_kafka import Message

    from cdc_program.settings import KafkaSettings

MAX_MESSAGE_BYTES = 32 * 1024 * 1024  # a mutation is at most half a segment, 16 MiB by default
MOST_MESSAGE_BYTES = 64 * 1024 * 1024  # where segments are larger: what the topic's max.message.bytes may be raised to
QUEUE_BYTES = 16 * 1024 * 1024  # what waits for Kafka: these two bound the publisher's memory
QUEUE_MESSAGES = 10_000  # of small ones, 0.7 kB each with what waits for them
METADATA_MS = 60_000  # so soon keys go by a topic's new partitions: what is sent until then makes a reshard longer
_TABLES_PARTITION = 0
_RAW = {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "delete"}  # what a raw topic must have
_RIGHTS = (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
_UNREACHABLE = frozenset(
    {"_TRANSPORT", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "_ALL_BROKERS_DOWN", "_RESOLVE", "REQUEST_TIMED_OUT"}
)

log = structlog.get_logger(__name__)

T = TypeVar("T")


class Acknowledged(Protocol):
    """Who waits for a message."""

    def acknowledge(self) -> None: ...


class Topics:
    """The topics that the publisher makes, and checks where they are there already."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._admin = AdminClient(_client(settings, {"log_level": 0}))

    def check_reachable(self) -> None:
        """CdcError KAFKA_UNREACHABLE, with the client's reason, unless a broker answers, and KAFKA_REFUSED if it does
        not accept the login. By a client of its own: reasons are kept until they are asked for.
        """
        told: list[KafkaError] = []
        client = AdminClient(_client(self._settings, {"log_level": 0, "error_cb": told.append}))
        try:
            client.list_topics(timeout=self._settings.connect_timeout_seconds)
        except KafkaException as error:
            client.poll(0)
            reasons = {reason.name(): reason for reason in told}
            refused = reasons.pop("_AUTHENTICATION", None)
            if refused is not None:
                raise kafka_error(refused, self._settings) from error
            reasons.pop("_ALL_BROKERS_DOWN", None)
            said = [reason.str() for reason in reasons.values()] or [error.args[0].str()]
            raise _unreachable(self._settings, "", "; ".join(said)) from error

    def missing_rights(self, names: Iterable[str]) -> list[str]:
        """What this user may not do with those of the topics that are there, a line each. A broker without an
        authorizer tells nothing, and forbids nothing.
        """
        there = sorted(self._metadata().keys() & set(names))
        if not there:
            return []
        answers = self._admin.describe_topics(TopicCollection(there), include_authorized_operations=True)
        missing = []
        for name, answer in answers.items():
            try:
                allowed = self._result(answer).authorized_operations
            except KafkaException as error:
                missing.append(f"The topic {name} may not be described: {error.args[0].str()}.")
                continue
            lacks = [right.name for right in _RIGHTS if allowed and right not in allowed]
            if lacks:
                missing.append(f"The topic {name} may not be used as it must be: {', '.join(lacks)} is not allowed.")
        return missing

    def ensure_raw(self, topic: str) -> int:
        """Make the raw topic, or check it: LogAppendTime, and no compaction. Returns its number of partitions."""
        made_with = {
            "retention.ms": str(self._settings.raw_retention_hours * 3_600_000),
            "max.message.bytes": str(MAX_MESSAGE_BYTES),
        }
        return self._ensure(topic, self._settings.raw_partitions, _RAW, made_with)

    def check_raw(self, topics: AbstractSet[str]) -> None:
        """Of those that are there: somebody may have altered one, or deleted it and made it anew. One whose settings
        may not be read any more is told, and no reason to stop. CdcError TOPIC_SETTINGS or KAFKA_UNREACHABLE.
        """
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        answers = self._admin.describe_configs(resources) if resources else {}
        for resource, answer in answers.items():
            try:
                entries = self._result(answer)
            except KafkaException as error:
                told = kafka_error(error.args[0], self._settings, resource.name)
                if told.code is Code.KAFKA_UNREACHABLE:
                    raise told from error
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:  # that is the sender's to tell
                    log.warning("a raw topic cannot be checked", code=told.code.text, problem=told.problem)
                continue
            _check(resource.name, {name: entry.value for name, entry in entries.items()}, _RAW)

    def ensure_tables(self, topic: str) -> None:
        """Make the compacted topic of table schemas, or check it."""
        partitions = self._ensure(topic, 1, {"cleanup.policy": "compact"}, {})
        if partitions != 1:
            raise _wrong_settings(topic, f"has {partitions} partitions; it must have one")

    def partition_counts(self) -> Mapping[str, int]:
        """Of the topics that are there; CdcError KAFKA_UNREACHABLE."""
        return self._metadata()

    def _ensure(self, topic: str, partitions: int, wanted: Mapping[str, str], made_with: Mapping[str, str]) -> int:
        known = self._metadata().get(topic)
        if known is None:
            self._create(topic, partitions, {**wanted, **made_with})
            known = self._metadata().get(topic, partitions)
        _check(topic, self._config(topic), wanted)
        return known

    def _metadata(self) -> dict[str, int]:
        """Topic → number of partitions."""
        try:
            topics = self._admin.list_topics(timeout=self._settings.connect_timeout_seconds).topics
        except KafkaException as error:
            raise kafka_error(error.args[0], self._settings) from error
        return {name: len(topic.partitions) for name, topic in topics.items()}

    def _create(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        new = NewTopic(
            topic,
            num_partitions=partitions,
            replication_factor=self._settings.replication_factor,
            config=config,
        )
        try:
            self._result(self._admin.create_topics([new])[topic])
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise kafka_error(error.args[0], self._settings, topic) from error

    def _config(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        deadline = monotonic() + self._settings.connect_timeout_seconds
        while True:
            try:
                answer = self._admin.describe_configs([resource])[resource]
                entries = self._result(answer)
                return {name: entry.value for name, entry in entries.items()}
            except KafkaException as error:
                is_new = error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART  # not on every broker yet
                if not is_new or monotonic() > deadline:
                    raise kafka_error(error.args[0], self._settings, topic) from error
            sleep(0.1)

    def _result(self, answer: Future[T]) -> T:
        """KafkaException, also if there is no answer in time: the client itself waits for longer."""
        try:
            return answer.result(self._settings.connect_timeout_seconds)
        except TimeoutError as error:
            raise KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT, "no answer in time")) from error

    def read_latest(self, topic: str) -> dict[bytes, bytes]:
        """The latest value of each key in a topic of one partition, up to its end now."""
        latest: dict[bytes, bytes] = {}
        consumer = Consumer(_client(self._settings, {**WITHOUT_GROUP, "log_level": 0}))
        try:
            consumer.assign([TopicPartition(topic, _TABLES_PARTITION, 0)])
            while True:
                message = consumer.poll(self._settings.connect_timeout_seconds)
                if message is None:
                    raise _unreachable(self._settings, f" (topic {topic})", "timed out")
                error = message.error()
                if error is not None and error.name() == GROUP_REFUSED:
                    continue
                if error is None:
                    latest[message.key() or b""] = message.value() or b""
                elif error.name() == "_PARTITION_EOF":
                    return latest
                else:
                    raise kafka_error(error, self._settings, topic)
        finally:
            consumer.close()


class Sender:
    """An idempotent producer whose queue is bounded: by QUEUE_BYTES, but for a message that is larger by itself and
    goes alone. librdkafka's own bound would never take that one, and call it a full queue for ever.

    `acknowledged`: how many messages; `latency_seconds`: from handing over to acknowledgement, of all of them together;
    `last_sent`: the monotonic time of the last one of each (topic, partition).
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
            _client(
                settings,
                {
                    "enable.idempotence": True,
                    "acks": "all",
                    "compression.type": "lz4",
                    "linger.ms": 5,
                    "partitioner": "murmur2",  # of the key, as Kafka's own clients
                    "topic.metadata.refresh.interval.ms": METADATA_MS,
                    "allow.auto.create.topics": False,  # a deleted one would come back with the broker's own settings
                    "message.max.bytes": MOST_MESSAGE_BYTES,
                    "message.timeout.ms": 0,  # nothing is given up while Kafka is away
                    "queue.buffering.max.kbytes": (QUEUE_BYTES + MOST_MESSAGE_BYTES) // 1024,
                    "queue.buffering.max.messages": QUEUE_MESSAGES,
                    "log.connection.close": False,
                    "error_cb": self._on_error,
                    "logger": LIBRDKAFKA_LOGGER,
                },
            )
        )

    def __len__(self) -> int:
        """The number of messages that are not acknowledged."""
        return len(self._producer)

    def send(self, topic: str, key: bytes, value: bytes, waiting: Acknowledged) -> bool:
        """Queue a message; False if the queue is full: then `poll` and try again."""
        return self._queue(topic, value, waiting, key=key)

    def send_to_partition(self, topic: str, partition: int, value: bytes, waiting: Acknowledged | None = None) -> bool:
        """Queue a message without a key; False if the queue is full."""
        return self._queue(topic, value, waiting, partition=partition)

    def _queue(self, topic: str, value: bytes, waiting: Acknowledged | None, **where: Any) -> bool:  # noqa: ANN401 - produce's own arguments
        if self._bytes and self._bytes + len(value) > QUEUE_BYTES:
            return False
        try:
            self._producer.produce(topic, value, on_delivery=partial(self._delivered, waiting, len(value)), **where)
        except BufferError:
            return False
        except KafkaException as error:
            raise kafka_error(error.args[0], self._settings, topic) from error
        self._bytes += len(value)
        return True

    def learn(self, topic: str) -> None:
        """Ask for the topic's partitions: to one that the producer has not heard of yet nothing may be sent. From any
        thread; CdcError KAFKA_UNREACHABLE.
        """
        try:
            self._producer.list_topics(topic, self._settings.connect_timeout_seconds)
        except KafkaException as error:
            raise kafka_error(error.args[0], self._settings, topic) from error

    def poll(self, seconds: float) -> None:
        """Take acknowledgements for up to so long, returning at the first; CdcError if a message was refused."""
        self._now = monotonic()
        self._producer.poll(seconds)
        if self._failure is not None:
            raise self._failure

    def flush(self, seconds: float) -> None:
        """Wait for all acknowledgements, at most so long."""
        self._producer.flush(seconds)

    def _delivered(self, waiting: Acknowledged | None, size: int, error: KafkaError | None, message: Message) -> None:
        self._bytes -= size
        if error is not None:
            self._failure = self._failure or kafka_error(error, self._settings, message.topic() or "")
            return
        self.acknowledged += 1
        self.latency_seconds += message.latency() or 0.0
        self.last_sent[message.topic() or "", message.partition() or 0] = self._now
        if waiting is not None:
            waiting.acknowledge()

    def _on_error(self, error: KafkaError) -> None:
        """librdkafka goes on after all but fatal errors."""
        if error.fatal():
            self._failure = self._failure or kafka_error(error, self._settings)


def _client(settings: KafkaSettings, own: Mapping[str, object]) -> dict[str, Any]:
    return {**client_config(settings), **own}


def _check(topic: str, actual: Mapping[str, str | None], wanted: Mapping[str, str]) -> None:
    """CdcError TOPIC_SETTINGS."""
    for name, value in wanted.items():
        if actual.get(name) != value:
            raise _wrong_settings(topic, f"has {name}={actual.get(name)}; it must be {value}")


def _wrong_settings(topic: str, problem: str) -> CdcError:
    return CdcError(
        Code.TOPIC_SETTINGS,
        f"The topic {topic} {problem}.",
        "Alter the topic (kafka-configs.sh), or delete it if it is empty: the publisher makes it as it should be.",
    )


def kafka_error(error: KafkaError, settings: KafkaSettings, topic: str = "") -> CdcError:
    """The error with its code: KAFKA_UNREACHABLE if there is no broker to talk to, else KAFKA_REFUSED."""
    about = f" (topic {topic})" if topic else ""
    if error.name() in _UNREACHABLE:
        return _unreachable(settings, about, error.str())
    if error.code() == KafkaError.INVALID_REPLICATION_FACTOR:  # brokers that are down do not count
        return CdcError(
            Code.KAFKA_UNREACHABLE,
            f"Kafka at {settings.bootstrap_servers} has too few brokers now{about}: {error.str()}.",
            "Start those that are down, or correct kafka.replication_factor.",
        )
    return CdcError(
        Code.KAFKA_REFUSED,
        f"Kafka at {settings.bootstrap_servers} refuses{about}: {error.name()}, {error.str()}.",
        "Mend the cause and start the publisher again: its position has not moved past what was refused.",
    )


def _unreachable(settings: KafkaSettings, about: str, reason: str) -> CdcError:
    return CdcError(
        Code.KAFKA_UNREACHABLE,
        f"Kafka at {settings.bootstrap_servers} does not answer{about}: {reason}.",
        "Start it, or correct kafka.bootstrap_servers and kafka.security_protocol.",
    )
