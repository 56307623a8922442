"""How a raw topic lies that got more partitions: what `state reshard` finds before it does anything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from cdc_messages.topics import partition_for
from cdc_program.errors import CdcError, Code
from materializer.errors import partition_count_changed, raw_messages_skipped, rebuild_unfinished, topic_recreated
from materializer.exactly_once.position import REBUILDING, RESHARDING, Position
from materializer.kafka import Topics, read_raw
from materializer.records import RawPartition
from materializer.store.versions import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdc_program.settings import KafkaSettings
    from materializer.records import RawRecord


class TopicNow(NamedTuple):
    """The raw topic as it is: its id, and the first and the next offset of each of its partitions."""

    name: str
    id: str
    bounds: Mapping[int, tuple[int, int]]

    @property
    def partitions(self) -> int:
        return len(self.bounds)

    def partition(self, number: int) -> RawPartition:
        return RawPartition(self.name, number)


class Survey(NamedTuple):
    """`before` partitions made the state; `positions` are the committed ones, of those partitions that have one.

    cut_ms: the earliest time (by the brokers) of a message that lies where `before` partitions would not have put it;
    infinite where there is none.
    """

    topic: TopicNow
    before: int
    positions: Mapping[int, Position]
    cut_ms: float

    @property
    def is_switched(self) -> bool:
        """Whether the state is dealt out already, and only the backlog is left."""
        return any(each.in_progress not in (None, RESHARDING) for each in self.positions.values())

    @property
    def is_begun(self) -> bool:
        return any(each.in_progress is not None for each in self.positions.values())

    @property
    def is_needless(self) -> bool:
        """Whether the state and all messages are where they belong."""
        return self.before == self.topic.partitions and not self.is_begun and math.isinf(self.cut_ms)

    def position(self, number: int) -> Position:
        """The position of a partition; of one that has none, the beginning."""
        return self.positions.get(number) or Position(0, NOTHING, self.before, self.topic.id)

    def lines(self) -> Iterator[str]:
        """What is to be done, for a reader."""
        topic = self.topic
        if self.is_needless:
            yield f"{topic.name}: nothing to do: the state and all messages are where they belong"
            return
        yield f"{topic.name}: the state is of {self.before} partitions, the topic has {topic.partitions}"
        if self.is_begun:
            yield f"{topic.name}: a reshard was begun and has to be finished"
        if not math.isinf(self.cut_ms):
            since = datetime.fromtimestamp(self.cut_ms / 1000, UTC).isoformat(timespec="milliseconds")
            yield f"{topic.name}: since {since} messages lie where {self.before} partitions would not put them"
        for number, (_, end) in topic.bounds.items():
            offset = self.position(number).offset
            yield f"{topic.partition(number)}: offset {offset}, {end - offset} messages to be folded"


def topic_now(settings: KafkaSettings, name: str) -> TopicNow:
    """CdcError(CONFIG_INVALID) where there is no such topic."""
    topics = Topics(settings)
    count = topics.partition_counts().get(name)
    if count is None:
        raise CdcError(Code.CONFIG_INVALID, f"There is no raw topic {name}.", "Name a table as keyspace.table.")
    bounds = topics.bounds([RawPartition(name, number) for number in range(count)])
    return TopicNow(
        name, topics.shapes([name])[name].topic_id, {each.partition: found for each, found in bounds.items()}
    )


def survey(settings: KafkaSettings, topic: TopicNow, found: Mapping[RawPartition, Position | None]) -> Survey:
    """CdcError where the positions are not such that a reshard could be the answer."""
    positions = {each.partition: position for each, position in found.items() if position is not None}
    if not positions:
        raise CdcError(
            Code.CONFIG_INVALID,
            f"The group has no offset of {topic.name}: there is no state to be dealt out.",
            "Name the group_id of the job; or just start it: it begins with the partitions that are there.",
        )
    if any(each.in_progress == REBUILDING for each in positions.values()):
        raise rebuild_unfinished(topic.name)
    counts = {position.partitions for position in positions.values()}
    before = max(counts)
    if before > topic.partitions:
        raise partition_count_changed(topic.name, before, topic.partitions)
    if any(each.topic_id not in ("", topic.id) for each in positions.values()):
        raise topic_recreated(topic.name)
    if len(counts) > 1 or any(number >= before for number in positions):
        raise CdcError(
            Code.STATE_MISMATCH,
            f"The group's positions of {topic.name} are of several numbers of partitions: {sorted(counts)}.",
            "Another program or an operator has set them: commit what the partitions' newest changelogs name.",
        )
    known = Survey(topic, before, positions, math.inf)
    for number, (first, _) in topic.bounds.items():
        if known.position(number).offset < first:
            raise raw_messages_skipped(topic.partition(number), known.position(number).offset, first)
    return known if known.is_begun else known._replace(cut_ms=_cut(settings, known))


def is_explained(record: RawRecord, number: int, count: int) -> bool:
    """Whether a record lies in the partition where `count` of them would have put it."""
    return not record.key or partition_for(record.key, count) == number


def _cut(settings: KafkaSettings, known: Survey) -> float:
    """The new partitions first, which tell at once."""
    cut = math.inf
    for number in sorted(known.topic.bounds, reverse=True):
        first, end = known.position(number).offset, known.topic.bounds[number][1]
        for record in read_raw(settings, known.topic.partition(number), first, end):
            if record.timestamp_ms >= cut:
                break
            if not is_explained(record, number, known.before):
                cut = record.timestamp_ms
                break
    return cut
