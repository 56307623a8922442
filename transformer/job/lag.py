"""Measure how far the streams are behind, for materializer.job.lag_watch."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from cdc_common.clients.group_offsets import CommittedOffsets
from materializer.kafka import Retention, Topics, driver_errors, read_timestamps
from materializer.kafka.clients import TIMEOUT
from transformer.kafka import Committed
from transformer.records import kafka_partition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from materializer.records import RawPartition
    from transformer.records import Definitions

    T = TypeVar("T")

_FETCH_SECONDS = 10.0


class UnreadStreams:
    """materializer.job.lag_watch.Unread. Partitions are those of streams. Two streams may read one topic."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._topics = Topics(definitions.kafka)
        self._groups = {each.name: definitions.group(each) for each in definitions.transformers}
        self._offsets: dict[str, CommittedOffsets] = {}

    def positions(self, partitions: Sequence[RawPartition]) -> dict[RawPartition, Committed | None]:
        found: dict[RawPartition, Committed | None] = {}
        of_group: dict[str, list[RawPartition]] = defaultdict(list)
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

    def bounds(self, partitions: Sequence[RawPartition]) -> dict[RawPartition, tuple[int, int]]:
        """The bounds of partitions whose topics exist: a missing topic must not hide the others."""
        counts = self._topics.partition_counts()
        there = [each for each in partitions if kafka_partition(each).topic in counts]
        return _of_kafka(there, self._topics.bounds)

    def offsets_at(self, partitions: Sequence[RawPartition], timestamp_ms: int) -> dict[RawPartition, int]:
        return _of_kafka(partitions, lambda each: self._topics.offsets_at(each, timestamp_ms))

    def retention(self, topic: str) -> Retention:
        return self._topics.retention(topic.partition("/")[2])

    def timestamps(self, offsets: Mapping[RawPartition, int]) -> dict[RawPartition, int]:
        """The timestamp at each offset. Of two streams of one partition, the one further back counts for both."""
        wanted: dict[RawPartition, int] = {}
        for partition, offset in offsets.items():
            source = kafka_partition(partition)
            wanted[source] = min(offset, wanted.get(source, offset))
        found = read_timestamps(self._definitions.kafka, wanted, _FETCH_SECONDS)
        return {each: found[kafka_partition(each)] for each in offsets if kafka_partition(each) in found}


def _of_kafka(
    partitions: Sequence[RawPartition], ask: Callable[[list[RawPartition]], dict[RawPartition, T]]
) -> dict[RawPartition, T]:
    found = ask(sorted({kafka_partition(each) for each in partitions}))
    return {each: found[kafka_partition(each)] for each in partitions}
