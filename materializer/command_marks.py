"""How commands mark the positions of a raw topic on which they work: Position.in_progress."""

from __future__ import annotations

from materializer.records import RawPartition

RESHARDING = (-1, -1)
"""`state reshard` redistributes the state. Then it sets the first and the next offset of the raw messages that are in
no state yet.
"""
REBUILDING = (-2, -2)
"""`rebuild` works; the state must not be used any more."""


def command_lock(topic: str) -> RawPartition:
    """A name that is no real raw partition. Its transactional producer fences any other command that works on the raw
    topic's states.
    """
    return RawPartition(f"{topic}/reshard", 0)
