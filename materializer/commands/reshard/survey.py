"""Surveys a raw topic that got more partitions, before `state reshard` changes anything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.topics import partition_for
from materializer.command_marks import REBUILDING, RESHARDING
from materializer.errors import RAW_FAULTS, no_raw_topic
from materializer.records import RawPartition
from stream_runtime.exactly_once.position import Position
from stream_runtime.kafka import Topics, read_raw
from stream_runtime.state.versions import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdc_common.settings import KafkaSettings
    from materializer.records import RawRecord


class RawTopic(NamedTuple):
    """A raw topic as it is now."""

    # Its name.
    name: str
    # Kafka's id of the topic.
    id: str
    # The first and the next offset of each partition, by its number.
    bounds: Mapping[int, tuple[int, int]]

    @property
    def partition_count(self) -> int:
        return len(self.bounds)

    def raw_partition(self, number: int) -> RawPartition:
        return RawPartition(self.name, number)


class Survey(NamedTuple):
    """A raw topic, and the state that was made from fewer partitions."""

    # The raw topic.
    topic: RawTopic
    # The number of partitions from which the state was made.
    old_count: int
    # The committed positions, of the partitions that have one.
    positions: Mapping[int, Position]
    # The earliest broker time (ms) of a message in another partition than `old_count` partitions would have given it;
    # infinite if there is none.
    first_moved_ms: float

    @property
    def is_switched(self) -> bool:
        """Whether the state is already redistributed, and only the backlog is left."""
        return any(position.in_progress not in (None, RESHARDING) for position in self.positions.values())

    @property
    def is_begun(self) -> bool:
        return any(position.in_progress is not None for position in self.positions.values())

    @property
    def is_unneeded(self) -> bool:
        """Whether the state and all messages are in the right partitions."""
        return self.old_count == self.topic.partition_count and not self.is_begun and math.isinf(self.first_moved_ms)

    def position(self, number: int) -> Position:
        """The position of a partition; the beginning if it has none."""
        return self.positions.get(number) or Position(0, NOTHING, self.old_count, self.topic.id)

    def describe(self) -> Iterator[str]:
        """Lines that say what a reshard would do."""
        topic = self.topic
        if self.is_unneeded:
            yield f"{topic.name}: nothing to do: the state and all messages are in the right partitions"
            return
        yield f"{topic.name}: the state has {self.old_count} partitions, the topic has {topic.partition_count}"
        if self.is_begun:
            yield f"{topic.name}: an interrupted reshard has to be finished"
        if not math.isinf(self.first_moved_ms):
            since = datetime.fromtimestamp(self.first_moved_ms / 1000, UTC).isoformat(timespec="milliseconds")
            yield f"{topic.name}: since {since} messages are not where {self.old_count} partitions would place them"
        for number, (_, end) in topic.bounds.items():
            offset = self.position(number).offset
            yield f"{topic.raw_partition(number)}: offset {offset}, {end - offset} messages to be folded"


def read_raw_topic(settings: KafkaSettings, name: str) -> RawTopic:
    """CdcError(CONFIG_INVALID) if there is no such topic."""
    topics = Topics(settings)
    counts = topics.partition_counts()
    count = counts.get(name)
    if count is None:
        raise no_raw_topic(name, counts)
    bounds = topics.bounds([RawPartition(name, number) for number in range(count)])
    return RawTopic(
        name,
        topics.shapes([name])[name].topic_id,
        {raw_partition.partition: found for raw_partition, found in bounds.items()},
    )


def survey_topic(settings: KafkaSettings, topic: RawTopic, found: Mapping[RawPartition, Position | None]) -> Survey:
    """`found` are the committed positions. CdcError if a reshard cannot repair them."""
    positions = {raw_partition.partition: position for raw_partition, position in found.items() if position is not None}
    if not positions:
        raise CdcError(
            Code.CONFIG_INVALID,
            f"The group has no committed offset for {topic.name}, so there is nothing to reshard.",
            "Set group_id to the job's group. If the job has never run, start it: it uses all partitions.",
        )
    for number, position in positions.items():
        if position.in_progress == REBUILDING:
            raise RAW_FAULTS.command_unfinished(topic.raw_partition(number), REBUILDING)
    counts = {position.partitions for position in positions.values()}
    old_count = max(counts)
    if old_count > topic.partition_count:
        raise RAW_FAULTS.partition_count_changed(topic.name, old_count, topic.partition_count)
    if any(position.topic_id not in ("", topic.id) for position in positions.values()):
        raise RAW_FAULTS.topic_recreated(topic.name)
    if len(counts) > 1 or any(number >= old_count for number in positions):
        raise CdcError(
            Code.STATE_MISMATCH,
            f"The group's positions of {topic.name} name different numbers of partitions: {sorted(counts)}.",
            "Another program or an operator has set them. If you have a copy of the earlier offsets with their "
            f"metadata, commit both. Otherwise: {RAW_FAULTS.advise_restart(topic.name)}",
        )
    known = Survey(topic, old_count, positions, math.inf)
    for number, (first, _) in topic.bounds.items():
        if known.position(number).offset < first:
            raise RAW_FAULTS.messages_skipped(topic.raw_partition(number), known.position(number).offset, first)
    return known if known.is_begun else known._replace(first_moved_ms=_find_first_moved(settings, known))


def is_placed_by(record: RawRecord, number: int, count: int) -> bool:
    """Whether `count` partitions would have placed the record in this one."""
    return not record.key or partition_for(record.key, count) == number


def _find_first_moved(settings: KafkaSettings, known: Survey) -> float:
    """Read the new partitions first: their first message with a key is a moved one."""
    first_ms = math.inf
    for number in sorted(known.topic.bounds, reverse=True):
        first, end = known.position(number).offset, known.topic.bounds[number][1]
        for record in read_raw(settings, known.topic.raw_partition(number), first, end):
            if record.timestamp_ms >= first_ms:
                break
            if not is_placed_by(record, number, known.old_count):
                first_ms = record.timestamp_ms
                break
    return first_ms
