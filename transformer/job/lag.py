"""Measure how far the streams are behind, for stream_runtime.driver.lag_watch."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from cdc_common.clients.group_offsets import CommittedOffsets
from stream_runtime.exactly_once.committed import Committed
from stream_runtime.kafka import Retention, Topics, driver_errors, read_timestamps
from stream_runtime.kafka.clients import TIMEOUT
from transformer.records import kafka_partition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from stream_runtime.records import SourcePartition
    from transformer.records import Definitions

    T = TypeVar("T")

_FETCH_SECONDS = 10.0


class UnreadStreams:
    """stream_runtime.driver.lag_watch.Unread. Partitions are those of streams. Two streams may read one topic."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._topics = Topics(definitions.kafka)
        self._groups = {each.name: definitions.group(each) for each in definitions.transformers}
        self._offsets: dict[str, CommittedOffsets] = {}

    def positions(self, partitions: Sequence[SourcePartition]) -> dict[SourcePartition, Committed | None]:
        found: dict[SourcePartition, Committed | None] = {}
        of_group: dict[str, list[SourcePartition]] = defaultdict(list)
        for partition in partitions:
            of_group[self._groups[partition.topic.partition("/")[0]]].append(partition)
        for group, wanted in of_group.items():
            with driver_errors(f"read the offsets of the group {group}"):
                offsets = self._offsets.get(group) or CommittedOffsets(self._definitions.kafka, group)
                self._offsets[group] = offsets
                committed = offsets.committed([kafka_partition(each) for each in wanted], TIMEOUT)
            for each in wanted:
                offset = committed.get(kafka_partition(each))
                found[each] = None if offset is None else Committed(offset, 0.0)
        return found

    def bounds(self, partitions: Sequence[SourcePartition]) -> dict[SourcePartition, tuple[int, int]]:
        """The bounds of partitions whose topics exist: a missing topic must not hide the others."""
        counts = self._topics.partition_counts()
        there = [each for each in partitions if kafka_partition(each).topic in counts]
        return _of_kafka(there, self._topics.bounds)

    def offsets_at(self, partitions: Sequence[SourcePartition], timestamp_ms: int) -> dict[SourcePartition, int]:
        return _of_kafka(partitions, lambda each: self._topics.offsets_at(each, timestamp_ms))

    def retention(self, topic: str) -> Retention:
        return self._topics.retention(topic.partition("/")[2])

    def timestamps(self, offsets: Mapping[SourcePartition, int]) -> dict[SourcePartition, int]:
        """The timestamp at each offset. Of two streams of one partition, the one further back counts for both."""
        wanted: dict[SourcePartition, int] = {}
        for partition, offset in offsets.items():
            source = kafka_partition(partition)
            wanted[source] = min(offset, wanted.get(source, offset))
        found = read_timestamps(self._definitions.kafka, wanted, _FETCH_SECONDS)
        return {each: found[kafka_partition(each)] for each in offsets if kafka_partition(each) in found}


def _of_kafka(
    partitions: Sequence[SourcePartition], ask: Callable[[list[SourcePartition]], dict[SourcePartition, T]]
) -> dict[SourcePartition, T]:
    found = ask(sorted({kafka_partition(each) for each in partitions}))
    return {each: found[kafka_partition(each)] for each in partitions}
