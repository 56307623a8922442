"""A period of time that repeats."""

from __future__ import annotations


class Interval:
    """Due each time that `seconds` have passed. Times are of one monotonic clock."""

    def __init__(self, seconds: float, now: float) -> None:
        self._seconds = seconds
        self._next = now + seconds

    def is_due(self, now: float) -> bool:
        if now < self._next:
            return False
        self._next = now + self._seconds
        return True
