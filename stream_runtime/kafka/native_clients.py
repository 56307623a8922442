"""The native core's clients, with those names of confluent-kafka's clients that the runtime calls.

They are the same librdkafka with the same properties, and make no Python object for a message.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaError, KafkaException, cimpl

from cdc_common.clients.kafka import log_line, logged_admin
from cdc_native.kafka.consumer import Consumer
from cdc_native.kafka.librdkafka import LibrdkafkaError
from cdc_native.kafka.transactions import TransactionalProducer
from stream_runtime.kafka.clients import QUICK
from stream_runtime.kafka.consumers import Errors, Polled
from stream_runtime.records import Record, SourcePartition
from stream_runtime.source_batch import SourceBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import ClusterMetadata

    from cdc_common.settings import KafkaSettings
    from cdc_native.kafka.source_batch import SourceBatch as NativeBatch
    from stream_runtime.records import ChangeRun
    from stream_runtime.source_batch import MessageGroups

_READ_BYTES = 8_388_608  # of keys and values at once


class Committed(NamedTuple):
    """A confluent_kafka.TopicPartition with a committed offset."""

    # The topic's name.
    topic: str
    # The partition's number.
    partition: int
    # The offset; OFFSET_INVALID if there is none.
    offset: int
    # What was committed with it.
    metadata: str
    # Why it could not be read.
    error: KafkaError | None


class NativeConsumer:
    """confluent_kafka.Consumer, which reads batches. KafkaException."""

    def __init__(self, properties: Mapping[str, object]) -> None:
        self._consumer = Consumer(cimpl.__file__, properties, log_line)

    def committed(self, partitions: Sequence[TopicPartition], timeout: float) -> list[Committed]:
        with _errors():
            found = self._consumer.committed([(at.topic, at.partition) for at in partitions], timeout)
        return [
            Committed(at.topic, at.partition, offset, metadata or "", KafkaError(code) if code else None)
            for at, (offset, metadata, code) in zip(partitions, found, strict=True)
        ]

    def incremental_assign(self, partitions: Sequence[TopicPartition]) -> None:
        with _errors():
            self._consumer.assign([(at.topic, at.partition, at.offset) for at in partitions])

    def incremental_unassign(self, partitions: Sequence[TopicPartition]) -> None:
        with _errors():
            self._consumer.unassign([(at.topic, at.partition) for at in partitions])

    def poll(self, most: int, seconds: float) -> tuple[list[tuple[SourcePartition, SourceBatch]], Errors]:
        """Read for `seconds`, or until there are `most` messages: a batch of what was read of each partition, and the
        errors and ends of partitions, each with its offset.
        """
        batches, errors = self._poll(most, _READ_BYTES, seconds)
        return [(SourcePartition(batch.topic, batch.partition), SourceBatch(batch)) for batch in batches], errors

    def poll_records(self, most: int, most_bytes: int, seconds: float) -> Polled:
        """Read as `poll` does, also until there are `most_bytes` of keys and values. The last 1,000 messages may exceed
        them. The records are made by the core: no Python code runs for each.
        """
        batches, errors = self._poll(most, most_bytes, seconds)
        records = [(SourcePartition(batch.topic, batch.partition), batch.records(Record)) for batch in batches]
        return Polled(records, sum(batch.size for batch in batches), errors)

    def _poll(self, most: int, most_bytes: int, seconds: float) -> tuple[list[NativeBatch], Errors]:
        with _errors():
            batches, errors = self._consumer.poll(most, most_bytes, seconds)
        return batches, [
            (SourcePartition(topic, partition) if topic else None, offset, KafkaError(code, text))
            for topic, partition, offset, code, text in errors
        ]

    def close(self) -> None:
        with _errors():
            self._consumer.close()


class NativeTransactions:
    """A transactional confluent_kafka.Producer, which sends batches. KafkaException."""

    def __init__(self, properties: Mapping[str, object], settings: KafkaSettings) -> None:
        self._producer = TransactionalProducer(cimpl.__file__, properties, log_line)
        self._settings = settings

    def init_transactions(self, timeout: float) -> None:
        with _errors():
            self._producer.init(timeout)

    def begin_transaction(self) -> None:
        with _errors():
            self._producer.begin()

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        with _errors():
            self._producer.send(topic, partition, key, value, headers)

    def send_changes(self, run: ChangeRun) -> None:
        with _errors():
            self._producer.send_changes(*run)

    def send_groups(self, messages: MessageGroups) -> None:
        with _errors():
            self._producer.send_groups(messages.partition, messages.groups)

    def send_offsets_to_transaction(self, offsets: Sequence[TopicPartition], group: str, timeout: float) -> None:
        sent = [(at.topic, at.partition, at.offset, at.metadata or "") for at in offsets]
        with _errors():
            self._producer.send_offsets(sent, group, timeout)

    def commit_transaction(self, timeout: float) -> None:
        with _errors():
            self._producer.commit(timeout)

    def abort_transaction(self, timeout: float) -> None:
        with _errors():
            self._producer.abort(timeout)

    def list_topics(self, topic: str, timeout: float) -> ClusterMetadata:
        """By a client of its own: it is only asked after a failure."""
        return logged_admin(self._settings, QUICK).list_topics(topic, timeout)


@contextmanager
def _errors() -> Iterator[None]:
    """Raise librdkafka's errors as confluent-kafka does."""
    try:
        yield
    except LibrdkafkaError as fault:
        error = KafkaError(
            fault.code, fault.text, fault.is_fatal, fault.is_retriable, txn_requires_abort=fault.requires_abort
        )
        raise KafkaException(error) from fault
