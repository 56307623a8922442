"""The consumer of one stream's group in a worker: it reads the partitions that it is given, up to what is committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from cdc_common.clients.kafka import client_config
from cdc_common.clients.kafka_errors import is_transient, kafka_error
from cdc_common.errors.codes import CdcError
from stream_runtime.faults import NEUTRAL_FAULTS, Faults
from stream_runtime.kafka import driver_errors
from stream_runtime.kafka.clients import QUICK
from stream_runtime.kafka.consumers import open_consumer
from stream_runtime.kafka.positions import read_stored
from stream_runtime.records import SourcePartition, SourceRecord

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from cdc_common.settings import KafkaSettings
    from stream_runtime.exactly_once.commits import StoredOffset

_AHEAD_BYTES = 33_554_432  # that all consumers of a process read ahead, beside a fetch response of each
_LEAST_AHEAD, _MOST_AHEAD = 262_144, 16_777_216  # by one consumer
_MESSAGE_BYTES = 400  # librdkafka keeps about as much for each message that is read ahead, beside its bytes
_FETCHED_BYTES = 1_048_576  # of a partition at once: librdkafka's default


class Read(NamedTuple):
    """The result of a read."""

    # The messages of each source partition, in the order of their offsets.
    records: dict[SourcePartition, Sequence[SourceRecord]]
    # The offset after the last message, or the partition's end, which may be later by markers of transactions.
    following: dict[SourcePartition, int]
    # The errors of source partitions that cannot be read.
    errors: dict[SourcePartition, CdcError]


class SourceReader:
    """Reads committed messages only. CdcError KAFKA_UNREACHABLE or KAFKA_REFUSED. Partitions are Kafka's. readers: of a
    process, which share the memory for what is read ahead.
    """

    def __init__(
        self, settings: KafkaSettings, group: str, faults: Faults = NEUTRAL_FAULTS, *, readers: int = 1
    ) -> None:
        self._faults = faults
        self._assigned: dict[SourcePartition, int] = {}
        self.consumer = open_consumer(
            {
                **client_config(settings),
                **QUICK,
                **_memory(readers),
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
        read = Read({}, {}, {})
        if not self._assigned:
            return read
        with driver_errors("read the source topics"):
            found, errors = self.consumer.poll(most, seconds)
            for partition, records in found:
                if partition in self._assigned:  # otherwise it has just been removed
                    before = read.records.get(partition)
                    read.records[partition] = records if before is None else [*before, *records]
                    self._assigned[partition] = read.following[partition] = records[-1].offset + 1
            for where, offset, error in errors:
                if where is None or where in self._assigned:
                    self._take(where, offset, error, read)
        return read

    def close(self) -> None:
        self.consumer.close()

    def _take(self, partition: SourcePartition | None, offset: int, error: KafkaError, read: Read) -> None:
        """An error without a partition is the consumer's: it concerns all."""
        code = error.code()
        if code == KafkaError._PARTITION_EOF and partition is not None:  # noqa: SLF001 - librdkafka's own codes
            read.following[partition] = max(offset, read.following.get(partition, 0))
        elif code == KafkaError._AUTO_OFFSET_RESET and partition is not None:  # noqa: SLF001
            read.errors[partition] = self._faults.messages_deleted(partition, self._assigned.get(partition, 0))
        elif not is_transient(error):
            if partition is None:
                raise KafkaException(error)
            read.errors[partition] = kafka_error(f"Cannot read {partition}", error)


def _memory(readers: int) -> dict[str, int]:
    """librdkafka reads ahead by at most this and one fetch response."""
    ahead = min(max(_AHEAD_BYTES // readers, _LEAST_AHEAD), _MOST_AHEAD)
    return {
        "queued.max.messages.kbytes": ahead // 1024,
        "queued.min.messages": ahead // _MESSAGE_BYTES,
        "fetch.max.bytes": max(ahead // 2, _FETCHED_BYTES),
        "max.partition.fetch.bytes": min(ahead // 2, _FETCHED_BYTES),
        "fetch.queue.backoff.ms": 20,
    }
