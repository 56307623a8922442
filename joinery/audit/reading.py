"""Reads partitions from the beginning up to given ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joinery.faults import JOIN_FAULTS
from stream_runtime.kafka.source_check import check_sources
from stream_runtime.kafka.source_reader import SourceReader
from stream_runtime.source_batch import SourceBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cdc_common.settings import KafkaSettings
    from stream_runtime.kafka import Topics
    from stream_runtime.records import SourcePartition, SourceRecord, TopicShape

_MOST_MESSAGES = 20_000
_READ_SECONDS = 1.0


class PartitionReader:
    """Reads complete partitions. It commits nothing. CdcError."""

    def __init__(self, kafka: KafkaSettings, group: str, topics: Topics) -> None:
        """group: a name in Kafka's logs."""
        self._kafka = kafka
        self._group = group
        self._topics = topics

    def read(
        self, shape: TopicShape, ends: Mapping[SourcePartition, int]
    ) -> Iterator[tuple[SourcePartition, Sequence[SourceRecord]]]:
        """The committed messages of partitions of one topic before their ends, batch by batch. Those of a partition are
        in order. shape: of the topic, which must stay as it is.
        """
        left = {partition: end for partition, end in ends.items() if end}
        reader = SourceReader(self._kafka, self._group, JOIN_FAULTS)
        try:
            for partition in left:
                reader.add(partition, None)
            while left:
                found = reader.read(_MOST_MESSAGES, _READ_SECONDS)
                read = check_sources(found, dict.fromkeys(left, shape), self._topics, JOIN_FAULTS)
                for error in read.errors.values():
                    raise error
                for partition, following in read.following.items():
                    if records := _before(read.records.get(partition, ()), left[partition]):
                        yield partition, records
                    if following >= left[partition]:
                        reader.remove(partition)
                        del left[partition]
        finally:
            reader.close()


def _before(records: Sequence[SourceRecord], end: int) -> Sequence[SourceRecord]:
    if isinstance(records, SourceBatch):
        return records.before(end)
    return [record for record in records if record.offset < end]
