"""What has been sent and not been acknowledged yet: the position moves only past what wholly has been."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Mark:
    """A place in a segment: `outstanding` messages of what lies between the mark before it and this one are not
    acknowledged.

    position: after the mutation. is_end: nothing of the segment comes after it. written_at: when a filler's row before
    it was written, in µs. clock: when all that was durable lay before it, in µs.
    """

    segment: int
    position: int
    outstanding: int = 0
    is_end: bool = False
    written_at: int | None = None
    clock: int | None = None

    def acknowledge(self) -> None:
        """One of its messages has been acknowledged."""
        self.outstanding -= 1


class InFlight:
    """Marks in the order in which they were read."""

    def __init__(self) -> None:
        self._marks: deque[Mark] = deque()

    def __len__(self) -> int:
        return len(self._marks)

    @property
    def oldest(self) -> Mark | None:
        return self._marks[0] if self._marks else None

    def add(self, mark: Mark) -> None:
        self._marks.append(mark)

    def move(self, segment: int, position: int) -> None:
        """Nothing was sent up to `position`: it is reached with the newest mark."""
        if self._marks and self._marks[-1].segment == segment and not self._marks[-1].is_end:
            self._marks[-1].position = position
        else:
            self._marks.append(Mark(segment, position))

    def tick(self, clock: int) -> bool:
        """All that was durable at `clock` (µs) has been read; False if nothing is in flight."""
        if self._marks:
            self._marks[-1].clock = clock
        return bool(self._marks)

    def take_acknowledged(self) -> list[Mark]:
        """Remove and return the oldest marks, up to the first with something outstanding."""
        taken: list[Mark] = []
        while self._marks and not self._marks[0].outstanding:
            taken.append(self._marks.popleft())
        return taken
