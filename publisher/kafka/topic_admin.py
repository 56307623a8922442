"""Creates and checks the publisher's topics, and reads the tables topic."""

from __future__ import annotations

from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient, NewTopic

from cdc_common.clients.kafka import GROUP_REFUSED, WITHOUT_GROUP, client_config
from cdc_common.clients.kafka_admin import answer_of, create_topic, partition_counts, topic_settings
from cdc_common.errors.codes import CdcError, Code
from publisher.kafka.errors import error_at, unreachable_error
from publisher.kafka.table_error import TableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from concurrent.futures import Future

    from cdc_common.settings import KafkaSettings

MAX_MESSAGE_BYTES = 32 * 1024 * 1024  # a mutation is at most half a segment, 16 MiB by default
_TABLES_PARTITION = 0
_RAW_TOPIC_CONFIG = {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "delete"}
_WATERMARKS_TOPIC_CONFIG = {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "compact"}
_WATERMARKS_CREATION_CONFIG = {"segment.ms": "3600000", "segment.bytes": "16777216"}  # so that it is compacted soon
_NEEDED_RIGHTS = (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)

log = structlog.get_logger(__name__)

T = TypeVar("T")

_NO_TOPIC = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED})


class TopicAdmin:
    """Creates the topics that are missing, and checks the settings of those that exist."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._admin = AdminClient(self._client_config({}))

    def check_reachable(self) -> None:
        """Raise CdcError KAFKA_UNREACHABLE with the client's reason if no broker answers, KAFKA_REFUSED if the login
        fails. It uses a client of its own: a client keeps its reasons until they are read.
        """
        reported: list[KafkaError] = []
        client = AdminClient(self._client_config({"error_cb": reported.append}))
        try:
            client.list_topics(timeout=self._settings.connect_timeout_seconds)
        except KafkaException as error:
            client.poll(0)
            reasons = {reason.name(): reason for reason in reported}
            refused = reasons.pop("_AUTHENTICATION", None)
            if refused is not None:
                raise error_at(self._settings, refused) from error
            reasons.pop("_ALL_BROKERS_DOWN", None)
            texts = [reason.str() for reason in reasons.values()] or [error.args[0].str()]
            raise unreachable_error(self._settings, "; ".join(texts)) from error

    def find_missing_rights(self, names: Iterable[str]) -> list[str]:
        """A line for each right that this user lacks on those of the topics that exist. A broker without an authorizer
        reports no rights, and forbids nothing.
        """
        existing = sorted(self.read_partition_counts().keys() & set(names))
        if not existing:
            return []
        answers = self._admin.describe_topics(TopicCollection(existing), include_authorized_operations=True)
        problems = []
        for name, answer in answers.items():
            try:
                allowed = self._wait_for(answer).authorized_operations
            except KafkaException as error:
                problems.append(f"This user may not describe the topic {name}: {error.args[0].str()}.")
                continue
            missing = [right.name for right in _NEEDED_RIGHTS if allowed and right not in allowed]
            if missing:
                problems.append(f"This user lacks rights on the topic {name}: {', '.join(missing)}.")
        return problems

    def ensure_raw_topic(self, topic: str) -> tuple[int, bool]:
        """Create the raw topic, or check it: LogAppendTime, and no compaction. Returns its number of partitions, and
        whether it had to be created.
        """
        creation_config = {
            "retention.ms": str(self._settings.raw_retention_hours * 3_600_000),
            "max.message.bytes": str(MAX_MESSAGE_BYTES),
        }
        return self._ensure_topic(topic, self._settings.raw_partitions, _RAW_TOPIC_CONFIG, creation_config)

    def check_raw_topics(self, topics: AbstractSet[str]) -> dict[str, TableError]:
        """Check the raw topics: an operator may have altered or deleted one. Returns what is wrong, by topic.
        Settings that can no longer be read are only logged. CdcError KAFKA_UNREACHABLE.
        """
        problems = {}
        for topic, error in self._raw_topic_errors(topics):
            if isinstance(error, CdcError):
                problems[topic] = TableError.of(error)
            elif error is not None:
                problem = error_at(self._settings, error.args[0], topic)
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    problems[topic] = TableError.of(problem)
                elif problem.code is Code.KAFKA_UNREACHABLE:
                    raise problem from error
                else:
                    log.warning("cannot check a raw topic", code=problem.code.text, problem=problem.problem)
        return problems

    def find_usable(self, topics: AbstractSet[str]) -> set[str]:
        """Return the raw topics of these that exist, and whose settings can be read and are as they must be."""
        return {topic for topic, error in self._raw_topic_errors(topics) if error is None}

    def _raw_topic_errors(self, topics: AbstractSet[str]) -> Iterator[tuple[str, CdcError | KafkaException | None]]:
        for topic, answer in topic_settings(self._admin, sorted(topics)):
            try:
                entries = self._wait_for(answer)
                _check_config(topic, {name: entry.value for name, entry in entries.items()}, _RAW_TOPIC_CONFIG)
            except (CdcError, KafkaException) as error:
                yield topic, error
            else:
                yield topic, None

    def ensure_tables_topic(self, topic: str) -> None:
        """Create the compacted topic of table schemas, or check it."""
        partitions, _ = self._ensure_topic(topic, 1, {"cleanup.policy": "compact"}, {})
        if partitions != 1:
            raise _wrong_settings(topic, f"has {partitions} partitions; it must have one")

    def ensure_watermarks_topic(self, topic: str) -> None:
        """Create the compacted topic of watermarks, or check it. The brokers set its timestamps."""
        partitions, _ = self._ensure_topic(topic, 1, _WATERMARKS_TOPIC_CONFIG, _WATERMARKS_CREATION_CONFIG)
        if partitions != 1:
            raise _wrong_settings(topic, f"has {partitions} partitions; it must have one")

    def read_partition_counts(self) -> dict[str, int]:
        """The number of partitions of each topic that exists; CdcError KAFKA_UNREACHABLE."""
        try:
            return partition_counts(self._admin, self._settings.connect_timeout_seconds)
        except KafkaException as error:
            raise error_at(self._settings, error.args[0]) from error

    def read_latest_values(self, topic: str, first: int = 0) -> tuple[dict[bytes, bytes], int]:
        """The latest value of each key in a topic with one partition, from an offset up to its current end; and that
        end. From the beginning if the offset does not exist.
        """
        latest: dict[bytes, bytes] = {}
        consumer = Consumer(self._client_config({**WITHOUT_GROUP, "auto.offset.reset": "earliest"}))
        try:
            consumer.assign([TopicPartition(topic, _TABLES_PARTITION, first)])
            while True:
                message = consumer.poll(self._settings.connect_timeout_seconds)
                if message is None:
                    raise unreachable_error(self._settings, "timed out", topic)
                error = message.error()
                if error is not None and error.name() == GROUP_REFUSED:
                    continue
                if error is None:
                    latest[message.key() or b""] = message.value() or b""
                elif error.name() == "_PARTITION_EOF":
                    return latest, message.offset() or 0
                else:
                    raise error_at(self._settings, error, topic)
        finally:
            consumer.close()

    def _client_config(self, more: Mapping[str, object]) -> dict[str, Any]:
        return {**client_config(self._settings), "log_level": 0, **more}

    def _ensure_topic(
        self, topic: str, partitions: int, wanted: Mapping[str, str], creation_config: Mapping[str, str]
    ) -> tuple[int, bool]:
        known, is_new = self._partition_count(topic), False
        if known is None:
            is_new = self._create_topic(topic, partitions, {**wanted, **creation_config})
            known = self._partition_count(topic) or partitions
        _check_config(topic, self._read_config(topic), wanted)
        return known, is_new

    def _partition_count(self, topic: str) -> int | None:
        """The topic's number of partitions; None if there is no such topic, or if this user may not know. To list all
        topics instead would cost more with each table.
        """
        described = self._admin.describe_topics(TopicCollection([topic]))[topic]
        try:
            return len(self._wait_for(described).partitions)
        except KafkaException as error:
            if error.args[0].code() not in _NO_TOPIC:
                raise error_at(self._settings, error.args[0], topic) from error
            return None

    def _create_topic(self, topic: str, partitions: int, config: dict[str, str]) -> bool:
        """Return False if somebody else has created it."""
        new = NewTopic(
            topic,
            num_partitions=partitions,
            replication_factor=self._settings.replication_factor,
            config=config,
        )
        try:
            return create_topic(self._admin, new, self._settings.connect_timeout_seconds)
        except KafkaException as error:
            raise error_at(self._settings, error.args[0], topic) from error

    def _read_config(self, topic: str) -> dict[str, str]:
        deadline = monotonic() + self._settings.connect_timeout_seconds
        while True:
            try:
                [(_, answer)] = topic_settings(self._admin, [topic])
                entries = self._wait_for(answer)
                return {name: entry.value for name, entry in entries.items()}
            except KafkaException as error:
                is_new = error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART  # not on every broker yet
                if not is_new or monotonic() > deadline:
                    raise error_at(self._settings, error.args[0], topic) from error
            sleep(0.1)

    def _wait_for(self, answer: Future[T]) -> T:
        return answer_of(answer, self._settings.connect_timeout_seconds)


def _check_config(topic: str, actual: Mapping[str, str | None], wanted: Mapping[str, str]) -> None:
    """Raise CdcError TOPIC_SETTINGS if the topic has other settings than `wanted`."""
    for name, value in wanted.items():
        if actual.get(name) != value:
            raise _wrong_settings(topic, f"has {name}={actual.get(name)}; it must be {value}")


def _wrong_settings(topic: str, problem: str) -> CdcError:
    return CdcError(
        Code.TOPIC_SETTINGS,
        f"The topic {topic} {problem}.",
        "Alter the topic (kafka-configs.sh), or delete it if it is empty: the publisher then creates it correctly.",
    )
