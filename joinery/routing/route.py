"""Routes a change of an input: which messages of the internal topic it becomes."""

from __future__ import annotations

from typing import NamedTuple

from cdc_common.messages.topics import partition_for
from joinery.joining.records import Group, Kind, Origin, Routed, Row


class InputChange(NamedTuple):
    """A change of an input's row."""

    # The row before it; None if there was none, or if it met no other row.
    before: Row | None
    # The row after it; None if there is none, or if it meets no other row.
    after: Row | None
    # Where it comes from.
    origin: Origin
    # As Routed's.
    may_miss: bool = False


def route(change: InputChange) -> list[Routed]:
    """The messages of a change, in the order in which they are sent. There is none if no joined row can change.

    A row that changes its join key leaves one group and is put into another one. These may be in different partitions.
    """
    before, after, origin, may_miss = change
    if before is not None and after is not None and (before.group, before.ident) == (after.group, after.ident):
        return [] if before == after else [Routed(Kind.UPDATE, after, origin, may_miss)]
    routed = []
    if before is not None:
        routed.append(Routed(Kind.RETRACT, before._replace(columns=b""), origin, may_miss))
    if after is not None:
        routed.append(Routed(Kind.PUT, after, origin, may_miss))
    return routed


def place(messages: list[Routed], partitions: int) -> list[tuple[int, Routed]]:
    """The messages of a change with their partitions of the internal topic, of so many."""
    placed = [(partition_of(routed.row.group, partitions), routed) for routed in messages]
    if len({partition for partition, _ in placed}) < len(placed):
        partition, first = placed[0]
        placed[0] = partition, first._replace(has_more=True)
    return placed


def partition_of(group: Group, partitions: int) -> int:
    return partition_for(group.key + group.alone, partitions)
