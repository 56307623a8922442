"""How full `cdc_raw` is, how fast it fills, and when Cassandra will refuse the next CDC write. Pure: no I/O.

When Cassandra makes a segment, it links it here, and counts it whole; if it does not fit into cdc_total_space beside
the files that are there, it is not linked, and refuses CDC writes (CommitLogSegmentManagerCDC.CDCSizeTracker; 3.11
counts the segments of the commit log's own folder instead of linking them). It makes each segment while the one before
it is being written, so that the folder grows in steps, two steps ahead of refusing.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

WINDOW_SECONDS = 600.0
DRAIN_SECONDS = 60.0
QUIET_SECONDS = 10.0  # at least, before a node is taken to be written to no more
LEAST_STEPS = 3  # that came before a rate is believed
WARN_PERCENTS = (50, 75, 90)
_STEPS_AHEAD = 2  # besides the segments that fit yet: the one that is linked already, and the one in use


class Space(NamedTuple):
    """Bytes in the folder, bytes at which CDC writes are refused (0 where that is not known), bytes a second that come
    and go, the seconds until it is full at this pace, and if nothing went (None: not in sight), and bytes of a segment.
    """

    used: int
    full_at: int
    arriving: float
    leaving: float
    seconds_to_full: float | None
    seconds_without_drain: float | None
    segment: int = 0

    @property
    def is_full(self) -> bool:
        return bool(self.full_at) and self.used > self.full_at

    @property
    def percent(self) -> float:
        """Of the space in which CDC writes are accepted."""
        return 100 * self.used / self.full_at if self.full_at else 0.0


class SpaceWatch:
    """Follows the folder. Times are of one monotonic clock, in seconds."""

    def __init__(self, total_space: int, segment_size: int) -> None:
        self.allow(total_space, segment_size)
        self._sizes: dict[int, int] = {}
        self._used = 0
        self._arrivals: deque[tuple[float, int]] = deque()
        self._departures: deque[tuple[float, int]] = deque()
        self._is_begun = False
        self._is_waiting = False

    def allow(self, total_space: int, segment_size: int) -> None:
        """From the next look on."""
        self._segment = segment_size
        self._full_at = max(total_space - segment_size, 1) if total_space else 0

    def look(self, now: float, sizes: Mapping[int, int], *, is_waiting: bool = False) -> Space:
        """Take the sizes of the segments that are there, by id; what was there at the first look is no arrival. What
        went before the publisher began to wait for something says nothing of what will go.
        """
        if is_waiting and not self._is_waiting:
            self._departures.clear()
        self._is_waiting = is_waiting
        arrived = sum(max(0, size - self._sizes.get(segment, 0)) for segment, size in sizes.items())
        left = sum(max(0, size - sizes.get(segment, 0)) for segment, size in self._sizes.items())
        if self._is_begun and arrived:
            self._arrivals.append((now, arrived))
        if self._is_begun and left:
            self._departures.append((now, left))
        self._is_begun = True
        self._sizes = dict(sizes)
        self._used = sum(sizes.values())
        _forget(self._arrivals, now - WINDOW_SECONDS)
        _forget(self._departures, now - DRAIN_SECONDS)
        return self._space(now)

    def _space(self, now: float) -> Space:
        arriving, leaving = self._arriving(now), self._leaving()
        since = now - self._arrivals[-1][0] if self._arrivals else 0.0  # so much of the next step has been written
        return Space(
            self._used,
            self._full_at,
            arriving,
            leaving,
            self._seconds_to_full(arriving - leaving, since),
            self._seconds_to_full(arriving, since),
            self._segment,
        )

    def _seconds_to_full(self, growth: float, since: float) -> float | None:
        if not self._full_at:
            return None
        if self._used > self._full_at:
            return 0.0
        fit = (self._full_at - self._used) // self._segment + 1
        return max((fit + _STEPS_AHEAD) * self._segment / growth - since, 0.0) if growth > 0 else None

    def _arriving(self, now: float) -> float:
        """Between the first and the last step; and no more than if a step came just now, even by itself where it is
        overdue by all pauses of the window: clients that have left are not feared until they are forgotten.
        """
        if len(self._arrivals) < LEAST_STEPS:
            return 0.0
        first, last = self._arrivals[0], self._arrivals[-1]
        after_first = sum(size for _, size in self._arrivals) - first[1]
        rate = min(after_first / max(last[0] - first[0], 1.0), (after_first + last[1]) / max(now - first[0], 1.0))
        quiet = now - last[0]
        if quiet <= QUIET_SECONDS:
            return rate
        longest = max(later - earlier for (earlier, _), (later, _) in pairwise(self._arrivals))
        return min(rate, last[1] / quiet) if quiet > 2 * longest else rate

    def _leaving(self) -> float:
        return sum(size for _, size in self._departures) / DRAIN_SECONDS


class FullSpan(NamedTuple):
    """Wall-clock seconds between which CDC writes were refused; `began_before` if it was so at the first look."""

    start: float
    end: float
    began_before: bool


class Alerts:
    """Which thresholds are newly crossed, and when a time of refused writes is over."""

    def __init__(self) -> None:
        self._warned = 0
        self._full_since: float | None = None
        self._began_before = True

    def crossed(self, space: Space) -> int | None:
        """The highest percentage that the folder has grown past since it was last below it."""
        reached = max((percent for percent in WARN_PERCENTS if space.percent >= percent), default=0)
        before, self._warned = self._warned, reached
        return reached if reached > before else None

    def full_span(self, space: Space, wall_clock: float) -> FullSpan | None:
        """The span, once it is over."""
        if space.is_full:
            self._full_since = self._full_since or wall_clock
            return None
        start, self._full_since = self._full_since, None
        began_before, self._began_before = self._began_before, False
        return None if start is None else FullSpan(start, wall_clock, began_before)


def _forget(events: deque[tuple[float, int]], before: float) -> None:
    while events and events[0][0] < before:
        events.popleft()
