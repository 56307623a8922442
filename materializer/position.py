"""The position of a raw partition: a committed offset of the consumer group and the metadata string beside it.

The metadata is JSON: format, state version, the offset again (a tool that moves the offset leaves other metadata), the
raw topic's number of partitions and id, and how often the position was committed only to be kept.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from cdc_program.errors import CdcError, Code

FORMAT_VERSION = 2  # since 2 a state may end before the offset, by messages that change nothing


class RawPartition(NamedTuple):
    """A partition of a raw topic: the unit of state."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Position(NamedTuple):
    """All raw messages before `offset` are folded into the state `version`, or change nothing. `partitions` is the
    raw topic's count, `topic_id` its id ("" in positions of builds that did not keep it); `renewals` makes a position
    that was committed again differ from the one before.
    """

    offset: int
    version: str
    partitions: int
    topic_id: str = ""
    renewals: int = 0


def encode(position: Position) -> str:
    """The metadata of a committed offset."""
    return json.dumps({"format": FORMAT_VERSION, **position._asdict()}, separators=(",", ":"))


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
        )
    except (ValueError, KeyError, TypeError) as error:
        raise _foreign(where, offset, "has no metadata of this program") from error
    if position.offset != offset:
        raise _foreign(where, offset, f"has the metadata of offset {position.offset}")
    return position


def check_topic(position: Position, partitions: int, topic_id: str, where: RawPartition) -> None:
    """CdcError: PARTITIONS_CHANGED, or STATE_MISMATCH where another topic has the name now."""
    if position.partitions != partitions or where.partition >= partitions:
        raise partitions_changed(where.topic, position.partitions, max(partitions, where.partition + 1))
    if position.topic_id and topic_id and position.topic_id != topic_id:
        raise made_anew(where.topic)


def partitions_changed(topic: str, before: int, now: int) -> CdcError:
    """CdcError(PARTITIONS_CHANGED)."""
    return CdcError(
        Code.PARTITIONS_CHANGED,
        f"The raw topic {topic} has {now} partitions, but its state was made with {before}: keys have moved.",
        "Stop the publishers and make a new raw topic with that number of partitions, or bring the old number back.",
    )


def made_anew(topic: str) -> CdcError:
    """CdcError(STATE_MISMATCH)."""
    return CdcError(
        Code.STATE_MISMATCH,
        f"The raw topic {topic} was deleted and made anew: what its offsets counted is gone.",
        "Rebuild the table in the CDC datacenter, and start it with another group_id and checkpoint_location.",
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
        "offset and the metadata that the partition's newest changelog names.",
    )
