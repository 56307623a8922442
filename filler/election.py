"""Who writes for all: a write reaches every node of the datacenter, so one filler writes what the neediest lacks.

Each filler tells the others what its node lacks, in rows that expire after two and a half periods: a node whose filler
is gone is soon no longer among them. Pure: no I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Sequence

PERIODS_TO_LIVE = 2.5


class Member(NamedTuple):
    """A node's filler. `lacking`: bytes that its commit log lacks; `held`: why nothing may be written, or empty."""

    host_id: UUID
    lacking: int
    held: str


def share(own: UUID, members: Sequence[Member]) -> int:
    """The bytes that the filler of the node `own` has to write now, for all of them: nothing unless its host id is the
    lowest, and nothing while one of the nodes must not be written to.
    """
    if any(member.held for member in members) or own != min(member.host_id for member in members):
        return 0
    return max(member.lacking for member in members)
