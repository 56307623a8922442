"""Elect the filler that writes: a write reaches every node of the datacenter, so one filler writes what the neediest
node needs.

Each filler reports what its node needs in a row that expires after two and a half periods: a node without a filler
soon leaves the election. Pure: no I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Sequence

PERIODS_TO_LIVE = 2.5


class Member(NamedTuple):
    """A node's filler."""

    # The node's host id.
    host_id: UUID
    # bytes that its commit log needs
    padding: int
    # why writes must pause, or empty
    paused: str


def padding_to_write(own: UUID, members: Sequence[Member]) -> int:
    """The bytes that the filler of the node `own` writes now, for all members. It is 0 unless its host id is the
    lowest, and 0 while any member is paused.
    """
    if any(member.paused for member in members) or own != min(member.host_id for member in members):
        return 0
    return max(member.padding for member in members)
