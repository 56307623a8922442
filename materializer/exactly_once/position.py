"""The position of a raw partition: a committed offset of the consumer group and the metadata string beside it.

The metadata is JSON: format, state version, the offset again (a tool that moves the offset leaves other metadata), the
raw topic's number of partitions and id, how often the position was committed only to be kept and, where the topic got
more partitions, what `state reshard` has made of it.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from cdc_program.errors import CdcError, Code
from materializer.errors import (
    being_rebuilt,
    being_resharded,
    made_anew,
    newer_format,
    partitions_changed,
    skipped,
    start_over,
)
from materializer.records import RawPartition, TopicShape

FORMAT_VERSION = 3  # of positions that `state reshard` has touched, which a build before it must not go on from
_UNTOUCHED = 2  # since 2 a state may end before the offset, by messages that change nothing
MARKED = (-1, -1)
REBUILDING = (-2, -2)


def command_lock(topic: str) -> RawPartition:
    """No partition's: its transactional producer fences any other command that works on the raw topic's states."""
    return RawPartition(f"{topic}/reshard", 0)


class Position(NamedTuple):
    """All raw messages before `offset` are folded into the state `version`, or change nothing. `partitions` is the
    raw topic's count, `topic_id` its id ("" in positions of builds that did not keep it); `renewals` makes a position
    that was committed again differ from the one before. `reshards`: how often the state was dealt out anew.

    `backlog` is there while a command is at work, and stops everybody else. Of `state reshard`: MARKED while the state
    is still dealt out by `partitions`; then the first offset and the end of the raw messages that are in no state yet.
    Of `rebuild`: REBUILDING, and the state is not to be used any more.
    """

    offset: int
    version: str
    partitions: int
    topic_id: str = ""
    renewals: int = 0
    reshards: int = 0
    backlog: tuple[int, int] | None = None


def encode(position: Position) -> str:
    """The metadata of a committed offset."""
    fields = position._asdict()
    if position.reshards or position.backlog:
        return json.dumps({"format": FORMAT_VERSION, **fields}, separators=(",", ":"))
    del fields["reshards"], fields["backlog"]
    return json.dumps({"format": _UNTOUCHED, **fields}, separators=(",", ":"))


def decode(offset: int, metadata: str | None, where: RawPartition) -> Position:
    """The position of a committed offset.

    CdcError: STATE_MISMATCH where the metadata is missing, not ours or for another offset; STATE_FORMAT where it is of
    a newer build.
    """
    try:
        fields = json.loads(metadata or "null")
        found = int(fields["format"])
        if not 1 <= found <= FORMAT_VERSION:
            raise newer_format(f"The position of {where}", found, FORMAT_VERSION)
        position = Position(
            int(fields["offset"]),
            str(fields["version"]),
            int(fields["partitions"]),
            str(fields.get("topic_id", "")),
            int(fields.get("renewals", 0)),
            int(fields.get("reshards", 0)),
            _backlog(fields.get("backlog")),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise _foreign(where, offset, "has no metadata of this program") from error
    if position.offset != offset:
        raise _foreign(where, offset, f"has the metadata of offset {position.offset}")
    return position


def _backlog(found: list[int] | None) -> tuple[int, int] | None:
    return None if found is None else (int(found[0]), int(found[1]))


def check_offset(partition: RawPartition, offset: int, bounds: tuple[int, int]) -> None:
    """`bounds`: the first offset that the raw partition has and the next one. CdcError: RAW_SKIPPED where messages from
    `offset` on are gone; STATE_MISMATCH where it ends before.
    """
    first, following = bounds
    if offset < first:
        raise skipped(partition, offset, first)
    if offset > following:
        raise CdcError(
            Code.STATE_MISMATCH,
            f"The group's offset of {partition} is {offset}, but the topic ends at {following}: it has been "
            "made anew, or has lost messages.",
            start_over(partition.topic),
        )


def check_shape(topic: str, known: TopicShape, now: TopicShape) -> None:
    """CdcError: STATE_MISMATCH or PARTITIONS_CHANGED where a raw topic is not what it was."""
    if known.topic_id != now.topic_id:
        raise made_anew(topic)
    if known.partitions != now.partitions:
        raise partitions_changed(topic, known.partitions, now.partitions)


def check_topic(position: Position, partitions: int, topic_id: str, where: RawPartition) -> None:
    """CdcError: PARTITIONS_CHANGED, or STATE_MISMATCH where another topic has the name now."""
    check_free(position, where)
    if position.partitions != partitions or where.partition >= partitions:
        raise partitions_changed(where.topic, position.partitions, max(partitions, where.partition + 1))
    if position.topic_id and topic_id and position.topic_id != topic_id:
        raise made_anew(where.topic)


def check_free(position: Position, where: RawPartition) -> None:
    """CdcError where a command has begun on the raw topic and is not done: PARTITIONS_CHANGED, or STATE_MISMATCH."""
    if position.backlog == REBUILDING:
        raise being_rebuilt(where.topic)
    if position.backlog is not None:
        raise being_resharded(where)


def _foreign(where: RawPartition, offset: int, problem: str) -> CdcError:
    return CdcError(
        Code.STATE_MISMATCH,
        f"The group's committed offset {offset} of {where} {problem}: another program or an operator has set it.",
        "The state cannot be moved to an offset by hand. Use another group_id for other readers; to go on, commit the "
        f"offset and the metadata that the partition's newest changelog names. {start_over(where.topic)}",
    )
