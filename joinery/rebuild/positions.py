"""The positions of a join while no job may move them: the shares' producers are fenced."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from joinery.faults import JOIN_FAULTS
from joinery.records import join_share, route_share
from stream_runtime.exactly_once.position import Position, decode
from stream_runtime.kafka import GroupPositions
from stream_runtime.kafka.commits import KafkaCommits
from stream_runtime.records import SourcePartition
from stream_runtime.state.versions import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from joinery.records import Definitions, Stage
    from stream_runtime.records import Message

REBUILDING = (-2, -2)
"""Position.in_progress of a partition whose state is being made again."""


class JoinPartition(NamedTuple):
    """A partition that is joined, and its fenced producer."""

    # The partition of the internal topic.
    internal: SourcePartition
    # Its position; one without a state if nothing was joined.
    position: Position
    # Its producer.
    commits: KafkaCommits

    def send(self, messages: Iterable[Message], position: Position) -> None:
        """Commit messages together with a position."""
        for message in messages:
            self.commits.send(message)
        self.commits.commit({self.internal: position.stored()})


def routed_offsets(definitions: Definitions, stage: Stage, *, fences: bool) -> dict[SourcePartition, int]:
    """The offset of each partition of the inputs before which all messages are routed. fences: end a job's routing."""
    name = stage.plan.join.name
    group = definitions.route_group(name)
    positions = GroupPositions(definitions.kafka, group, JOIN_FAULTS)
    partitions = [
        SourcePartition(topic, number) for topic, shape in stage.sources.items() for number in range(shape.partitions)
    ]
    if fences:
        for partition in partitions:
            with closing(KafkaCommits(definitions.kafka, group, route_share(name, partition), positions)):
                pass
    stored = positions.stored(partitions)
    return {partition: 0 if found is None else found.offset for partition, found in stored.items()}


def fenced_partitions(definitions: Definitions, stage: Stage) -> list[JoinPartition]:
    """All partitions that are joined. A job cannot commit any of them until it opens it again."""
    group = definitions.settings.group_id
    positions = GroupPositions(definitions.kafka, group, JOIN_FAULTS)
    shape = stage.internal_shape
    made = []
    for number in range(shape.partitions):
        internal = SourcePartition(stage.internal, number)
        commits = KafkaCommits(definitions.kafka, group, join_share(stage.plan.join.name, internal), positions)
        stored = commits.read()[internal]
        found = (
            Position(0, NOTHING, shape.partitions, shape.topic_id)
            if stored is None
            else decode(stored.offset, stored.metadata, internal, JOIN_FAULTS)
        )
        made.append(JoinPartition(internal, found, commits))
    return made
