"""How often the job starts Spark's query again, after what a restart probably heals, before it ends."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_SECONDS = 600.0
"""How long the query may fail again and again before the job ends."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_WORKS_SECONDS = 120.0  # without a failure, after which the next one is the first


class SparkRetries:
    """Growing pauses between restarts: 1, 2, 4 … 60 s, for at most LONGEST_SECONDS from the first failure on."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first = 0.0
        self._last = 0.0
        self._failures = 0
        self.total = 0

    def next_pause(self) -> float | None:
        """Count a failure. Return the seconds before the next restart; None if the job is to end."""
        now = self._clock()
        if not self._failures or now - self._last >= _WORKS_SECONDS:
            self._first, self._failures = now, 0
        self._failures += 1
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(self._failures - 1, 16))
        if now + pause - self._first > LONGEST_SECONDS:
            return None
        self._last = now + pause
        self.total += 1
        return pause
