"""The consumer of one stream's group in a worker: it reads the partitions that it is given, up to what is committed."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from cdc_common.clients.kafka import LOGGED, client_config
from cdc_common.clients.kafka_errors import is_transient, kafka_error
from cdc_common.errors.codes import CdcError
from stream_runtime.faults import NEUTRAL_FAULTS, Faults
from stream_runtime.kafka import driver_errors
from stream_runtime.kafka.clients import QUICK, TIMEOUT
from stream_runtime.kafka.positions import read_stored
from stream_runtime.records import SourcePartition, SourceRecord

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from confluent_kafka import Message

    from cdc_common.settings import KafkaSettings
    from stream_runtime.exactly_once.commits import StoredOffset

_AT_ONCE = 1000
_MEMORY = {
    # librdkafka reads ahead by at most the first value and one fetch response of the second.
    "queued.max.messages.kbytes": 16_384,
    "fetch.max.bytes": 8_388_608,
    "fetch.queue.backoff.ms": 20,
}


class Read(NamedTuple):
    """The messages that were read of each partition.

    following: the offset after the last message, or the partition's end, which may be later by markers of transactions.
    errors: of partitions that cannot be read.
    """

    records: dict[SourcePartition, list[SourceRecord]]
    following: dict[SourcePartition, int]
    errors: dict[SourcePartition, CdcError]


class SourceReader:
    """Reads committed messages only. CdcError KAFKA_UNREACHABLE or KAFKA_REFUSED. Partitions are Kafka's."""

    def __init__(self, settings: KafkaSettings, group: str, faults: Faults = NEUTRAL_FAULTS) -> None:
        self._faults = faults
        self._assigned: dict[SourcePartition, int] = {}
        self.consumer = Consumer(
            {
                **client_config(settings),
                **QUICK,
                **_MEMORY,
                **LOGGED,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )

    def stored(self, partitions: Collection[SourcePartition]) -> Mapping[SourcePartition, StoredOffset | None]:
        """The committed offsets. Waits for the end of open transactions. KafkaException."""
        return read_stored(self.consumer, partitions)

    def bounds(self, partition: SourcePartition) -> tuple[int, int]:
        """The first available offset and the next one."""
        with driver_errors(f"read the offsets of {partition}"):
            self.consumer.list_topics(partition.topic, TIMEOUT)  # a starting broker may not know the partition
            first, following = self.consumer.get_watermark_offsets(TopicPartition(*partition), TIMEOUT)
        return first, following

    def add(self, partition: SourcePartition, offset: int | None) -> None:
        """Read this partition too: from the offset on, or from the beginning if it is None."""
        self._assigned[partition] = 0 if offset is None else offset
        start = OFFSET_BEGINNING if offset is None else offset
        with driver_errors(f"read {partition}"):
            self.consumer.incremental_assign([TopicPartition(*partition, start)])

    def remove(self, partition: SourcePartition) -> None:
        if self._assigned.pop(partition, None) is not None:
            with driver_errors(f"stop reading {partition}"):
                self.consumer.incremental_unassign([TopicPartition(*partition)])

    def read(self, most: int, seconds: float) -> Read:
        """Read about `most` messages at most, for at most `seconds`."""
        read = Read(defaultdict(list), {}, {})
        if not self._assigned:
            return read
        end = time.monotonic() + seconds
        count = 0
        with driver_errors("read the source topics"):
            while count < most:
                left = end - time.monotonic()
                messages = self.consumer.consume(min(_AT_ONCE, most - count), max(0.0, left))
                count += self._take(messages, read)
                if left <= 0:
                    break
        return read

    def close(self) -> None:
        self.consumer.close()

    def _take(self, messages: Iterable[Message], read: Read) -> int:
        count = 0
        for message in messages:
            error = message.error()
            partition = SourcePartition(message.topic() or "", message.partition() or 0)
            offset = message.offset()
            if message.topic() and partition not in self._assigned:  # it has just been removed
                continue
            if error is None:
                assert offset is not None
                key, value = message.key(), message.value()
                read.records[partition].append(
                    SourceRecord(None if key is None else bytes(key), None if value is None else bytes(value), offset)
                )
                self._assigned[partition] = read.following[partition] = offset + 1
                count += 1
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's own codes
                assert offset is not None
                read.following[partition] = offset
            else:
                self._add_error(partition if message.topic() else None, error, read)
        return count

    def _add_error(self, partition: SourcePartition | None, error: KafkaError, read: Read) -> None:
        """An error without a partition is the consumer's: it concerns all."""
        if error.code() == KafkaError._AUTO_OFFSET_RESET and partition is not None:  # noqa: SLF001
            read.errors[partition] = self._faults.messages_deleted(partition, self._assigned.get(partition, 0))
        elif not is_transient(error):
            if partition is None:
                raise KafkaException(error)
            read.errors[partition] = kafka_error(f"Cannot read {partition}", error)
