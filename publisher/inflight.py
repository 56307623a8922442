"""Sent messages that Kafka has not acknowledged yet, and the positions in the log that wait for them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class PendingMessages:
    """Messages that were sent together."""

    # How many of them are not acknowledged yet.
    outstanding: int = field(default=0, kw_only=True)

    def acknowledge(self, count: int = 1) -> None:
        """Kafka has acknowledged so many of the messages."""
        self.outstanding -= count


@dataclass(slots=True, eq=False)
class PendingPosition(PendingMessages):
    """A position in a segment, and the messages sent for the log between the previous pending position and this one."""

    # The number of the commit log segment.
    segment: int
    # after the last of its mutations
    position: int
    # the end of the segment
    is_end: bool = False
    # the time at which a filler wrote its row before this position, in µs
    written_at: int | None = None
    # a time at which all durable data lay before this position, in µs
    clock: int | None = None


class InFlight:
    """Pending positions in the order of the log. A position can be saved once it and all before it are acknowledged."""

    def __init__(self) -> None:
        self._pending: deque[PendingPosition] = deque()

    def __len__(self) -> int:
        return len(self._pending)

    @property
    def oldest(self) -> PendingPosition | None:
        return self._pending[0] if self._pending else None

    def segments(self) -> set[int]:
        """The segments of the pending positions."""
        return {pending.segment for pending in self._pending}

    def add(self, pending: PendingPosition) -> None:
        self._pending.append(pending)

    def extend_to(self, segment: int, position: int) -> None:
        """Note that nothing was sent for the log up to `position`: it is reached together with the newest pending
        position.
        """
        if self._pending and self._pending[-1].segment == segment and not self._pending[-1].is_end:
            self._pending[-1].position = position
        else:
            self._pending.append(PendingPosition(segment, position))

    def set_clock(self, clock: int) -> bool:
        """All data that was durable at `clock` (µs) has been read; False if nothing is in flight."""
        if self._pending:
            self._pending[-1].clock = clock
        return bool(self._pending)

    def take_acknowledged(self) -> list[PendingPosition]:
        """Remove and return the oldest positions, up to the first one with outstanding messages."""
        acknowledged: list[PendingPosition] = []
        while self._pending and not self._pending[0].outstanding:
            acknowledged.append(self._pending.popleft())
        return acknowledged
