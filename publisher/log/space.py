"""Measure how full `cdc_raw` is, and forecast when Cassandra will refuse the next CDC write. Pure: no I/O.

When Cassandra creates a segment, it links it in cdc_raw and counts its full size. If the segment does not fit into
cdc_total_space beside the files that are there, Cassandra does not link it, and it refuses CDC writes
(CommitLogSegmentManagerCDC.CDCSizeTracker; 3.11 counts the segments of the commit log's own folder instead of linking
them). Cassandra creates each segment while it still writes the previous one. So the folder grows in steps, and is two
steps ahead of the first refused write.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

WINDOW_SECONDS = 600.0
DRAIN_SECONDS = 60.0
HORIZON_SECONDS = 30 * 86400.0  # ten minutes of measuring say nothing about a later day
IDLE_SECONDS = 10.0  # a node without writes for less than this is not idle
LEAST_STEPS = 3  # a rate needs so many steps
WARN_PERCENTS = (50, 75, 90)
_STEPS_AHEAD = 2  # besides the segments that still fit: the linked one, and the active one
_CASSANDRAS_OWN = 2  # segments that no publisher can free: the active one, and the one that is made ahead


class Space(NamedTuple):
    """The room in the folder of CDC segments. Sizes are in bytes, rates in bytes a second."""

    # by the files in the folder
    used: int
    # Above so many bytes Cassandra refuses CDC writes; 0 if this is not known.
    full_at: int
    # The bytes a second that arrive.
    arriving: float
    # The bytes a second that are deleted.
    leaving: float
    # at this pace; None: not within HORIZON_SECONDS
    seconds_to_full: float | None
    # if nothing left the folder; None: not within HORIZON_SECONDS
    seconds_without_drain: float | None
    # the size of a segment
    segment: int = 0

    @property
    def is_full(self) -> bool:
        return bool(self.full_at) and self.used > self.full_at

    @property
    def percent(self) -> float:
        """The share of the space in which CDC writes are accepted."""
        return 100 * self.used / self.full_at if self.full_at else 0.0


class SpaceWatch:
    """Measures how the folder grows and shrinks. Times are of one monotonic clock, in seconds."""

    def __init__(self, total_space: int, segment_size: int) -> None:
        self.set_allowance(total_space, segment_size)
        self._sizes: dict[int, int] = {}
        self._used = 0
        self._arrivals: deque[tuple[float, int]] = deque()
        self._departures: deque[tuple[float, int]] = deque()
        self._has_started = False
        self._is_waiting = False
        self._keeps_up = False

    def set_allowance(self, total_space: int, segment_size: int) -> None:
        """Takes effect at the next update."""
        self._segment = segment_size
        self._full_at = max(total_space - segment_size, 1) if total_space else 0

    def update(self, now: float, sizes: Mapping[int, int], *, is_waiting: bool = False) -> Space:
        """`sizes`: of the segments that are present, by id. Those present at the first update do not count as arrivals.
        The forecast ignores space freed before the publisher started waiting. While the folder has at most the segments
        that Cassandra writes, the publisher keeps up: after a load has ended, arrivals are counted for longer
        than departures.
        """
        if is_waiting and not self._is_waiting:
            self._departures.clear()
        self._is_waiting = is_waiting
        arrived = sum(max(0, size - self._sizes.get(segment, 0)) for segment, size in sizes.items())
        left = sum(max(0, size - sizes.get(segment, 0)) for segment, size in self._sizes.items())
        if self._has_started and arrived:
            self._arrivals.append((now, arrived))
        if self._has_started and left:
            self._departures.append((now, left))
        self._has_started = True
        self._sizes = dict(sizes)
        self._used = sum(sizes.values())
        self._keeps_up = not is_waiting and len(sizes) <= _CASSANDRAS_OWN
        _forget(self._arrivals, now - WINDOW_SECONDS)
        _forget(self._departures, now - DRAIN_SECONDS)
        return self._space(now)

    def _space(self, now: float) -> Space:
        arriving, leaving = self._arriving(now), self._leaving()
        since = now - self._arrivals[-1][0] if self._arrivals else 0.0  # the node has written the next step for so long
        return Space(
            self._used,
            self._full_at,
            arriving,
            leaving,
            None if self._keeps_up else self._seconds_to_full(arriving - leaving, since),
            self._seconds_to_full(arriving, since),
            self._segment,
        )

    def _seconds_to_full(self, growth: float, since: float) -> float | None:
        if not self._full_at:
            return None
        if self._used > self._full_at:
            return 0.0
        fit = (self._full_at - self._used) // self._segment + 1
        size = (fit + _STEPS_AHEAD) * self._segment
        return max(size / growth - since, 0.0) if growth * HORIZON_SECONDS > size else None

    def _arriving(self, now: float) -> float:
        """The rate between the first and the last step, but at most the rate if the next step came now. If the pause is
        longer than twice any pause in the window, only the last step counts: clients that have left do not raise the
        forecast until the window has passed.
        """
        if len(self._arrivals) < LEAST_STEPS:
            return 0.0
        first, last = self._arrivals[0], self._arrivals[-1]
        after_first = sum(size for _, size in self._arrivals) - first[1]
        rate = min(after_first / max(last[0] - first[0], 1.0), (after_first + last[1]) / max(now - first[0], 1.0))
        pause = now - last[0]
        if pause <= IDLE_SECONDS:
            return rate
        longest = max(later - earlier for (earlier, _), (later, _) in pairwise(self._arrivals))
        return min(rate, last[1] / pause) if pause > 2 * longest else rate

    def _leaving(self) -> float:
        return sum(size for _, size in self._departures) / DRAIN_SECONDS


class FullSpan(NamedTuple):
    """A span of time in which CDC writes were refused."""

    # Its start, in seconds since the epoch.
    start: float
    # Its end, in seconds since the epoch.
    end: float
    # already at the first update
    began_before: bool


class SpaceAlerts:
    """Finds the thresholds that are newly crossed, and the end of a time of refused writes."""

    def __init__(self) -> None:
        self._warned = 0
        self._full_since: float | None = None
        self._began_before = True

    def find_crossed(self, space: Space) -> int | None:
        """The highest percentage that the folder has newly reached, or None."""
        reached = max((percent for percent in WARN_PERCENTS if space.percent >= percent), default=0)
        before, self._warned = self._warned, reached
        return reached if reached > before else None

    def find_full_span(self, space: Space, wall_clock: float) -> FullSpan | None:
        """The span in which the folder was full, once it is over."""
        if space.is_full:
            self._full_since = self._full_since or wall_clock
            return None
        start, self._full_since = self._full_since, None
        began_before, self._began_before = self._began_before, False
        return None if start is None else FullSpan(start, wall_clock, began_before)


def _forget(events: deque[tuple[float, int]], before: float) -> None:
    while events and events[0][0] < before:
        events.popleft()
