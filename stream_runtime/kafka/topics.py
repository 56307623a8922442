"""Describing topics, and creating change topics and dead-letter topics."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType

from cdc_common.clients.kafka import logged_admin
from cdc_common.clients.kafka_admin import answer_of, create_topic, in_requests, partition_counts, topic_settings
from cdc_common.clients.kafka_errors import is_transient, kafka_error
from cdc_common.errors.codes import CdcError, Code
from stream_runtime.kafka.clients import QUICK, TIMEOUT, driver_errors, timeout_refused
from stream_runtime.kafka.unread import Retention
from stream_runtime.records import SourcePartition, TopicShape

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from cdc_common.settings import KafkaSettings
    from stream_runtime.words import Words

_NO_TOPIC = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED}
_HOUR_MS = 3_600_000


class Topics:
    """An admin client. CdcError (KAFKA_UNREACHABLE, KAFKA_REFUSED).

    After a failure a new client asks (decision 0018). A broker that wakes up may name no controller; a client then
    waits for one until its next look at the metadata, which is minutes away.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._admin = _client(settings)

    def partition_counts(self) -> dict[str, int]:
        """The number of partitions of each topic."""
        with self._errors("list the topics"):
            return partition_counts(self._admin, self._settings.connect_timeout_seconds)

    def shapes(self, topics: Collection[str]) -> dict[str, TopicShape]:
        """The present partition count and id of each of these topics."""
        found = self.each_shape(topics)
        for shape in found.values():
            if isinstance(shape, CdcError):
                raise shape
        return {name: shape for name, shape in found.items() if not isinstance(shape, CdcError)}

    def each_shape(self, topics: Collection[str]) -> dict[str, TopicShape | CdcError]:
        """Return what `shapes` returns, with the error of each topic that has one."""
        found: dict[str, TopicShape | CdcError] = {}
        for asked in in_requests(topics):
            with self._errors("describe the topics"):
                described = self._admin.describe_topics(TopicCollection(asked), request_timeout=TIMEOUT)
            found |= {name: _shape_of(name, answer) for name, answer in described.items()}
        if any(isinstance(shape, CdcError) and shape.code is Code.KAFKA_UNREACHABLE for shape in found.values()):
            self._admin = _client(self._settings)
        return found

    def matching(self, pattern: str) -> list[str]:
        """The topics whose names match a regular expression."""
        return [name for name in self.partition_counts() if re.match(pattern, name)]

    def bounds(self, partitions: Sequence[SourcePartition]) -> dict[SourcePartition, tuple[int, int]]:
        """The first available offset and the next one of each source partition."""
        with driver_errors("list the offsets of the topics"):
            # A client keeps a starting broker's answer about leaders for minutes: use a new one.
            admin = _client(self._settings)
            first = _list_offsets(admin, partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
            following = _list_offsets(admin, partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]
            return {partition: (first[partition], following[partition]) for partition in partitions}

    def ends(self, partitions: Collection[SourcePartition]) -> dict[SourcePartition, int]:
        """The next offset of each source partition at this moment, without those whose leaders do not say it now."""
        found: dict[SourcePartition, int] = {}
        with self._errors("list the offsets of the topics"):
            for asked in in_requests(partitions):
                answered = self._ends_now(asked)
                found |= answered
                if not answered:  # the next request would wait as long
                    break
        if len(found) < len(partitions):
            self._admin = _client(self._settings)
        return found

    def _ends_now(self, partitions: list[SourcePartition]) -> dict[SourcePartition, int]:
        found = {}
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        for partition, answer in _ask_offsets(self._admin, partitions, latest):
            try:
                found[partition] = answer_of(answer, TIMEOUT).offset
            except KafkaException as error:
                if not is_transient(error.args[0]):
                    raise
        return found

    def had_messages(self, topics: Collection[str]) -> set[str]:
        """Those of the topics to which a message was ever sent. Not all of them need to exist."""
        if not topics:
            return set()
        counts = self.partition_counts()
        partitions = [SourcePartition(topic, number) for topic in topics for number in range(counts.get(topic, 0))]
        return {partition.topic for partition, (_, following) in self.bounds(partitions).items() if following}

    def offsets_at(self, partitions: Sequence[SourcePartition], timestamp_ms: int) -> dict[SourcePartition, int]:
        """The offset of the first message of this time or later; -1 if there is none."""
        with driver_errors("list the offsets of the topics"):
            at = OffsetSpec.for_timestamp(timestamp_ms)
            return _list_offsets(_client(self._settings), partitions, at)

    def retention(self, topic: str) -> Retention:
        settings = self._settings_of(topic)
        milliseconds = int(settings["retention.ms"].value)
        return Retention(None if milliseconds < 0 else milliseconds, int(settings["retention.bytes"].value) >= 0)

    def max_message_bytes(self, topic: str) -> int:
        """The topic's max.message.bytes."""
        return int(self._settings_of(topic)["max.message.bytes"].value)

    def each_max_message_bytes(self, topics: Collection[str]) -> dict[str, int | CdcError]:
        """The max.message.bytes of each topic, or the error of one that has one."""
        return {
            name: found if isinstance(found, CdcError) else int(found["max.message.bytes"].value)
            for name, found in self._each_settings(topics)
        }

    def check_transaction_timeout(self, seconds: float) -> None:
        """Raise CdcError(TRANSACTION_TIMEOUT) if the brokers allow less. Without the right to ask, the
        tasks find out.
        """
        with self._errors("list the brokers"):
            brokers = self._admin.list_topics(timeout=self._settings.connect_timeout_seconds).brokers
            if not brokers:  # one that has stood still knows none for a moment
                raise KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))  # noqa: SLF001
        resource = ConfigResource(ResourceType.BROKER, str(next(iter(brokers))))
        try:
            settings: dict[str, Any] = answer_of(self._admin.describe_configs([resource])[resource], TIMEOUT)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.CLUSTER_AUTHORIZATION_FAILED:
                raise
            return
        allowed_ms = int(settings["transaction.max.timeout.ms"].value)
        if seconds * 1000 > allowed_ms:
            raise timeout_refused(seconds, f" ({allowed_ms / 1000:g} s)")

    def check_timestamps(self, topics: Sequence[str], words: Words) -> dict[str, CdcError]:
        """The errors of topics: TOPIC_SETTINGS unless the brokers set the timestamps, or why that is not known."""
        errors: dict[str, CdcError] = {}
        for name, found in self._each_settings(topics):
            if isinstance(found, CdcError):
                errors[name] = found
            elif (error := _wrong_timestamps(name, found, words)) is not None:
                errors[name] = error
        return errors

    def _each_settings(self, topics: Collection[str]) -> Iterator[tuple[str, dict[str, Any] | CdcError]]:
        for topic, answer in topic_settings(self._admin, topics):
            try:
                with self._errors(f"read the settings of {topic}"):
                    yield topic, answer_of(answer, TIMEOUT)
            except CdcError as error:
                yield topic, error

    def make_change_topic(
        self, topic: str, partitions: int | None = None, *, is_keyed: bool = True, max_message_bytes: int | None = None
    ) -> TopicShape:
        """Create the topic unless it exists: its shape.

        partitions: by default the settings' number. is_keyed: brokers refuse messages without keys in compacted topics.
        max_message_bytes: by default the brokers' limit.
        """
        config = {"cleanup.policy": "delete"}
        if is_keyed:
            least, most = self._settings.min_compaction_lag_hours, self._settings.max_compaction_lag_hours
            config = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(least * _HOUR_MS)}
            if most:  # the brokers refuse less than the least
                config["max.compaction.lag.ms"] = str(max(least, most) * _HOUR_MS)
        if max_message_bytes is not None:
            config["max.message.bytes"] = str(max_message_bytes)
        return self._make(topic, partitions or self._settings.change_partitions, config)

    def each_is_compacted(self, topics: Collection[str]) -> dict[str, bool | CdcError]:
        """Whether the brokers compact each topic, or the error of one that has one."""
        return {
            name: found if isinstance(found, CdcError) else "compact" in found["cleanup.policy"].value
            for name, found in self._each_settings(topics)
        }

    def make_kept_topic(self, topic: str, max_message_bytes: int, partitions: int = 1) -> TopicShape:
        """Create the topic unless it exists: its shape. It has no time-based retention."""
        config = {"cleanup.policy": "delete", "retention.ms": "-1", "max.message.bytes": str(max_message_bytes)}
        return self._make(topic, partitions, config)

    def make_internal_topic(self, topic: str, *, max_message_bytes: int) -> TopicShape:
        """Create the topic, with the settings' number of partitions, unless it exists: its shape. Nothing is deleted
        from it.
        """
        config = {"cleanup.policy": "delete", "retention.ms": "-1", "max.message.bytes": str(max_message_bytes)}
        return self._make(topic, self._settings.change_partitions, config)

    def _make(self, topic: str, partitions: int, config: dict[str, str]) -> TopicShape:
        shape = self._find(topic)
        if shape is not None:
            return shape
        _check_name(topic, self.partition_counts())
        new = NewTopic(topic, partitions, self._settings.replication_factor, config=config)
        with self._errors(f"create the topic {topic}"):
            create_topic(self._admin, new, TIMEOUT)
            return self._wait_for(topic)

    def _find(self, topic: str) -> TopicShape | None:
        """The topic's shape; None if there is no such topic, or if this user may not know."""
        with self._errors(f"describe the topic {topic}"):
            described = self._admin.describe_topics(TopicCollection([topic]), request_timeout=TIMEOUT)[topic]
            try:
                return _shape(answer_of(described, TIMEOUT))
            except KafkaException as error:
                if error.args[0].code() not in _NO_TOPIC:
                    raise
                return None

    def _settings_of(self, topic: str) -> dict[str, Any]:
        with self._errors(f"read the settings of {topic}"):
            [(_, answer)] = topic_settings(self._admin, [topic])
            return answer_of(answer, TIMEOUT)

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        """Convert errors as driver_errors does. Create a new client if Kafka cannot be reached."""
        try:
            with driver_errors(doing):
                yield
        except CdcError as error:
            if error.code is Code.KAFKA_UNREACHABLE:
                self._admin = _client(self._settings)
            raise

    def _wait_for(self, topic: str) -> TopicShape:
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            shape = self._find(topic)
            if shape is not None and shape.partitions:
                return shape
            time.sleep(0.05)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001


def _shape_of(topic: str, described: Future[Any]) -> TopicShape | CdcError:
    try:
        return _shape(answer_of(described, TIMEOUT))
    except KafkaException as error:
        return kafka_error(f"Cannot describe the topic {topic}", error.args[0])


def _shape(described: Any) -> TopicShape:  # noqa: ANN401 - the client declares no types
    return TopicShape(len(described.partitions), str(described.topic_id))


def _wrong_timestamps(topic: str, settings: Mapping[str, Any], words: Words) -> CdcError | None:
    kind = settings["message.timestamp.type"].value
    if kind == "LogAppendTime":
        return None
    return CdcError(
        Code.TOPIC_SETTINGS,
        f"The {words.topic} {topic} has message.timestamp.type={kind}; the brokers must set the timestamps.",
        f"kafka-configs --alter --entity-type topics --entity-name {topic} "
        "--add-config message.timestamp.type=LogAppendTime",
    )


def _check_name(topic: str, others: Iterable[str]) -> None:
    """Raise CdcError(TOPIC_NAMES_COLLIDE) if Kafka would refuse the topic because of another one."""
    for other in others:
        if other.replace(".", "_") == topic.replace(".", "_"):
            raise CdcError(
                Code.TOPIC_NAMES_COLLIDE,
                f"The topic {topic} cannot be created beside {other}: Kafka treats '.' and '_' in names as the same.",
                "Publish one of the two tables with another kafka.topic_prefix.",
            )


def _client(settings: KafkaSettings) -> AdminClient:
    """A client that logs why it cannot connect."""
    return logged_admin(settings, QUICK)


def _list_offsets(
    admin: AdminClient, partitions: Sequence[SourcePartition], spec: OffsetSpec
) -> dict[SourcePartition, int]:
    return {found: answer_of(answer, TIMEOUT).offset for found, answer in _ask_offsets(admin, partitions, spec)}


def _ask_offsets(
    admin: AdminClient, partitions: Iterable[SourcePartition], spec: OffsetSpec
) -> Iterator[tuple[SourcePartition, Future[Any]]]:
    for asked in in_requests(partitions):
        answers: dict[TopicPartition, Future[Any]] = admin.list_offsets(
            {TopicPartition(*partition): spec for partition in asked}
        )
        for at, answer in answers.items():
            yield SourcePartition(at.topic, at.partition), answer
