"""The position of a source partition with a state: the group's committed offset, and the metadata string beside it.

The metadata is JSON with a format version and the fields of Position. It repeats the offset, so that a tool that moves
the offset leaves metadata that does not match.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from stream_runtime.errors import check_format
from stream_runtime.exactly_once.commits import StoredOffset
from stream_runtime.exactly_once.rest import rest_from_json, rest_to_json
from stream_runtime.records import Rest, SourcePartition, TopicShape

if TYPE_CHECKING:
    from stream_runtime.faults import Faults

FORMAT_VERSION = 1


class Position(NamedTuple):
    """All messages before `offset` are in the state `version`, or change nothing."""

    # The next offset to process.
    offset: int
    # The state's version.
    version: str
    # The topic's number of partitions.
    partitions: int
    # Kafka's id of the source topic; empty if it is not known.
    topic_id: str = ""
    # How often the position was committed only to keep it from expiring. Each refresh makes it differ.
    refreshes: int = 0
    # How often the state was redistributed: messages may come from producers that do not know it yet.
    reshards: int = 0
    # Set while a command works on the topic, which stops everything else. The command says what the numbers mean.
    in_progress: tuple[int, int] | None = None
    # How long the source partition may sleep; None if that is not known.
    rest: Rest | None = None
    # The number of the last version that changed more than times, and its time of messages (ms); None if it is not
    # known.
    busy: tuple[int, int] | None = None

    def stored(self) -> StoredOffset:
        """The committed offset, with the other fields as its metadata."""
        return StoredOffset(self.offset, encode(self))


def encode(position: Position) -> str:
    """The metadata of a committed offset."""
    fields = {**position._asdict(), "rest": rest_to_json(position.rest)}
    return json.dumps({"format": FORMAT_VERSION, **fields}, separators=(",", ":"))


def decode(offset: int, metadata: str | None, partition: SourcePartition, faults: Faults) -> Position:
    """The position of a committed offset.

    CdcError: STATE_MISMATCH if the metadata is missing, foreign or for another offset; STATE_FORMAT if its format is
    not one that this build reads.
    """
    try:
        fields = json.loads(metadata or "null")
        check_format(f"The position of {partition}", int(fields["format"]), FORMAT_VERSION)
        position = Position(
            int(fields["offset"]),
            str(fields["version"]),
            int(fields["partitions"]),
            str(fields["topic_id"]),
            int(fields["refreshes"]),
            int(fields["reshards"]),
            _pair(fields["in_progress"]),
            rest_from_json(fields.get("rest")),
            _pair(fields.get("busy")),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise faults.offset_foreign(partition, offset, f"has no metadata of the {faults.words.job}") from error
    if position.offset != offset:
        raise faults.offset_foreign(partition, offset, f"has the metadata of offset {position.offset}")
    return position


def _pair(field: list[int] | None) -> tuple[int, int] | None:
    return None if field is None else (int(field[0]), int(field[1]))


def check_offset(partition: SourcePartition, offset: int, bounds: tuple[int, int], faults: Faults) -> None:
    """`bounds`: the source partition's first available offset and its next one. Raise CdcError if messages from
    `offset` on were deleted, or if the source partition ends before `offset`.
    """
    first, following = bounds
    if offset < first:
        raise faults.messages_skipped(partition, offset, first)
    if offset > following:
        raise faults.offset_beyond_end(partition, offset, following)


def check_shape(topic: str, known: TopicShape, now: TopicShape, faults: Faults) -> None:
    """Raise CdcError if the topic was recreated, or if its partitions changed."""
    if known != now:
        raise faults.topic_changed(topic, known, now)


def check_topic(position: Position, shape: TopicShape, partition: SourcePartition, faults: Faults) -> None:
    """Raise CdcError if the position is not of this topic, or if a command on the topic has not finished."""
    check_no_command(position, partition, faults)
    topic, partitions = partition.topic, shape.partitions
    if position.partitions != partitions or partition.partition >= partitions:
        raise faults.partition_count_changed(topic, position.partitions, max(partitions, partition.partition + 1))
    if position.topic_id and shape.topic_id and position.topic_id != shape.topic_id:
        raise faults.topic_recreated(topic)


def check_no_command(position: Position, partition: SourcePartition, faults: Faults) -> None:
    """Raise CdcError if a command on the topic has begun and not finished."""
    if position.in_progress is not None:
        raise faults.command_unfinished(partition, position.in_progress)
