"""The position of a raw partition: a committed offset of the consumer group, and the metadata string beside it.

The metadata is JSON with a format version and the fields of Position. It repeats the offset, so that a tool that moves
the offset leaves metadata that does not match.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from cdc_common.errors.codes import CdcError, Code
from materializer.errors import (
    advise_rebuild,
    check_format,
    partition_count_changed,
    raw_messages_skipped,
    rebuild_unfinished,
    reshard_unfinished,
    topic_recreated,
)
from materializer.exactly_once.rest import rest_from_json, rest_to_json
from materializer.records import RawPartition, Rest, TopicShape

FORMAT_VERSION = 1
RESHARDING = (-1, -1)
REBUILDING = (-2, -2)


def command_lock(topic: str) -> RawPartition:
    """A name that is no real raw partition. Its transactional producer fences any other command that works on the raw
    topic's states.
    """
    return RawPartition(f"{topic}/reshard", 0)


class Position(NamedTuple):
    """All raw messages before `offset` are folded into the state `version`, or change nothing.

    partitions, topic_id: the raw topic's partition count and id.
    refreshes: how often the position was committed only to keep it from expiring. Each refresh makes it differ.
    reshards: how often `state reshard` has redistributed the state.
    in_progress: set while a command works on the raw topic, which stops everything else. `state reshard` sets
    RESHARDING until the state is redistributed; then the first and the next offset of the raw messages that are in no
    state yet. `rebuild` sets REBUILDING; the state must not be used any more.
    rest: how long the raw partition may sleep; None if that is not known.
    busy: the number of the last version that changed more than times, and its time of raw messages (ms); None if it is
    not known.
    """

    offset: int
    version: str
    partitions: int
    topic_id: str = ""
    refreshes: int = 0
    reshards: int = 0
    in_progress: tuple[int, int] | None = None
    rest: Rest | None = None
    busy: tuple[int, int] | None = None


def encode(position: Position) -> str:
    """The metadata of a committed offset."""
    fields = {**position._asdict(), "rest": rest_to_json(position.rest)}
    return json.dumps({"format": FORMAT_VERSION, **fields}, separators=(",", ":"))


def decode(offset: int, metadata: str | None, raw_partition: RawPartition) -> Position:
    """The position of a committed offset.

    CdcError: STATE_MISMATCH if the metadata is missing, foreign or for another offset; STATE_FORMAT if its format is
    not one that this build reads.
    """
    try:
        fields = json.loads(metadata or "null")
        check_format(f"The position of {raw_partition}", int(fields["format"]), FORMAT_VERSION)
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
        raise _foreign_metadata(raw_partition, offset, "has no metadata of the materializer") from error
    if position.offset != offset:
        raise _foreign_metadata(raw_partition, offset, f"has the metadata of offset {position.offset}")
    return position


def _pair(field: list[int] | None) -> tuple[int, int] | None:
    return None if field is None else (int(field[0]), int(field[1]))


def check_offset(raw_partition: RawPartition, offset: int, bounds: tuple[int, int]) -> None:
    """`bounds`: the raw partition's first available offset and its next one. CdcError: RAW_SKIPPED if messages from
    `offset` on were deleted; STATE_MISMATCH if the raw partition ends before `offset`.
    """
    first, following = bounds
    if offset < first:
        raise raw_messages_skipped(raw_partition, offset, first)
    if offset > following:
        raise CdcError(
            Code.STATE_MISMATCH,
            f"The group's offset of {raw_partition} is {offset}, but the topic ends at {following}: the topic was "
            "recreated, or has lost messages.",
            advise_rebuild(raw_partition.topic),
        )


def check_shape(topic: str, known: TopicShape, now: TopicShape) -> None:
    """Raise CdcError STATE_MISMATCH if the raw topic was recreated, or RAW_PARTITIONS_CHANGED if its partitions
    changed.
    """
    if known.topic_id != now.topic_id:
        raise topic_recreated(topic)
    if known.partitions != now.partitions:
        raise partition_count_changed(topic, known.partitions, now.partitions)


def check_topic(position: Position, shape: TopicShape, raw_partition: RawPartition) -> None:
    """Raise CdcError if the position is not of this raw topic: RAW_PARTITIONS_CHANGED, or STATE_MISMATCH if another
    topic has its name now. Also raise it if a command on the raw topic has not finished.
    """
    check_no_command(position, raw_partition)
    topic, partitions = raw_partition.topic, shape.partitions
    if position.partitions != partitions or raw_partition.partition >= partitions:
        raise partition_count_changed(topic, position.partitions, max(partitions, raw_partition.partition + 1))
    if position.topic_id and shape.topic_id and position.topic_id != shape.topic_id:
        raise topic_recreated(topic)


def check_no_command(position: Position, raw_partition: RawPartition) -> None:
    """Raise CdcError RAW_PARTITIONS_CHANGED or STATE_MISMATCH if a command on the raw topic has begun
    and not finished.
    """
    if position.in_progress == REBUILDING:
        raise rebuild_unfinished(raw_partition.topic)
    if position.in_progress is not None:
        raise reshard_unfinished(raw_partition)


def _foreign_metadata(raw_partition: RawPartition, offset: int, problem: str) -> CdcError:
    return CdcError(
        Code.STATE_MISMATCH,
        f"The group's committed offset {offset} of {raw_partition} {problem}: another program or an operator set it.",
        "An offset alone cannot move the state. Use another group_id for other consumers. If you have a copy of the "
        f"earlier offset with its metadata, commit both. Otherwise: {advise_rebuild(raw_partition.topic)}",
    )
