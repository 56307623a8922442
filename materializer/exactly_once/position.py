"""The position of a raw partition: a committed offset of the consumer group and the metadata string beside it.

The metadata is JSON: format, state version, the offset again (a tool that moves the offset leaves other metadata), the
raw topic's number of partitions and id, how often the position was committed only to be kept and, where the topic got
more partitions, what `state reshard` has made of it.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from cdc_program.errors import CdcError, Code

FORMAT_VERSION = 3  # of positions that `state reshard` has touched, which a build before it must not go on from
_UNTOUCHED = 2  # since 2 a state may end before the offset, by messages that change nothing
MARKED = (-1, -1)
REBUILDING = (-2, -2)


class RawPartition(NamedTuple):
    """A partition of a raw topic: the unit of state."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def command_lock(topic: str) -> RawPartition:
    """No partition's: its transactional producer fences any other command that works on the raw topic's states."""
    return RawPartition(f"{topic}/reshard", 0)


class TopicShape(NamedTuple):
    """How many partitions a raw topic has, and its id, which a topic that is made anew under its name does not have."""

    partitions: int
    topic_id: str


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


def partitions_changed(topic: str, before: int, now: int) -> CdcError:
    """CdcError(PARTITIONS_CHANGED)."""
    problem = f"The raw topic {topic} has {now} partitions, but its state was made with {before}: keys have moved."
    if now < before:
        return CdcError(
            Code.PARTITIONS_CHANGED,
            problem,
            f"Kafka takes no partitions away: see who made the topic anew. {start_over(topic)}",
        )
    return CdcError(Code.PARTITIONS_CHANGED, problem, f"{_reshard(topic)} Then start the materializer again.")


def being_resharded(where: RawPartition) -> CdcError:
    """CdcError(PARTITIONS_CHANGED) for a position that `state reshard` is at work on, or was."""
    return CdcError(
        Code.PARTITIONS_CHANGED,
        f"`cassandra-materializer state reshard` has begun to deal out the state of {where.topic}, and is not done.",
        f"Let it finish. If it was stopped: {_reshard(where.topic)}",
    )


def being_rebuilt(topic: str) -> CdcError:
    """CdcError(STATE_MISMATCH) for a raw topic that `rebuild` is at work on, or was."""
    return CdcError(
        Code.STATE_MISMATCH,
        f"`cassandra-materializer rebuild` has begun to make the table of {topic} start over, and is not done.",
        f"Let it finish. If it was stopped, run `cassandra-materializer rebuild {_table(topic)} --yes` again.",
    )


def misplaced(where: RawPartition, offset: int, belongs: int) -> CdcError:
    """CdcError(PARTITIONS_CHANGED) for a raw message that came to the wrong partition after a reshard."""
    return CdcError(
        Code.PARTITIONS_CHANGED,
        f"The raw message at offset {offset} of {where} belongs to partition {belongs}: whoever sent it has not seen "
        "that the topic has more partitions now.",
        f"Restart the publishers, which then do. {_reshard(where.topic)} Then start the materializer again.",
    )


def _reshard(topic: str) -> str:
    return f"Run `cassandra-materializer state reshard {_table(topic)}`: it puts each row where its key belongs now."


def start_over(topic: str) -> str:
    """What to do where the state of a raw topic can no longer be gone on from."""
    return f"Start the table over: `cassandra-materializer rebuild {_table(topic)}` says how (docs/operations.md)."


def _table(topic: str) -> str:
    return ".".join(topic.rsplit(".", 2)[-2:])


def made_anew(topic: str) -> CdcError:
    """CdcError(STATE_MISMATCH)."""
    return CdcError(
        Code.STATE_MISMATCH,
        f"The raw topic {topic} was deleted and made anew: what its offsets counted is gone.",
        start_over(topic),
    )


def skipped(partition: RawPartition, expected: int, found: int) -> CdcError:
    """CdcError(RAW_SKIPPED)."""
    return CdcError(
        Code.RAW_SKIPPED,
        f"Raw messages of {partition} are missing: the next one should have offset {expected}, but it has {found}.",
        "They were deleted before they were read (see retention.ms of the raw topic); the changes in between are lost. "
        + start_over(partition.topic),
    )


def newer_format(what: str, found: int, own: int) -> CdcError:
    """CdcError(STATE_FORMAT) for data of a format version that this build does not read."""
    return CdcError(
        Code.STATE_FORMAT,
        f"{what} has format version {found}; this build reads up to {own}.",
        "Run the version of the materializer that wrote it, or a later one.",
    )


def _foreign(where: RawPartition, offset: int, problem: str) -> CdcError:
    return CdcError(
        Code.STATE_MISMATCH,
        f"The group's committed offset {offset} of {where} {problem}: another program or an operator has set it.",
        "The state cannot be moved to an offset by hand. Use another group_id for other readers; to go on, commit the "
        f"offset and the metadata that the partition's newest changelog names. {start_over(where.topic)}",
    )
