"""Place shares on workers: the same load for each worker, and as few moves as possible.

A share that moves costs a new producer, messages that are read twice, and the fetch of its state. It moves if
its worker is gone, or if that lowers the load of the busiest worker by more than the move costs.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stream_runtime.records import Share
    from stream_runtime.worker.task import TaskResult

_AVERAGE_SECONDS = 60.0  # over which loads are averaged
_BASE_LOAD = 0.002  # of a share that has nothing to fold, in seconds of work a second
_TOLERANCE = 0.1  # of the mean load, by which a worker may have more than that
_SETTLE_SECONDS = 5.0  # without another worker, after which the first move is made
_PAUSE_SECONDS = 60.0  # from one round of moves to the next: the loads of the new placement must be known
_MOST_MOVED = 0.1  # of the shares, in one round; new workers may get more
_FETCH_BYTES = 50_000_000  # of a state, in a second
_MOVE_SECONDS = 1.0  # of a move without a state
_WORTH_SECONDS = 600.0  # in which a move must gain more work than it costs


class Load(NamedTuple):
    """The load of a share on its worker."""

    # Seconds of work a second.
    seconds: float = 0.0
    # The size of its state.
    state_bytes: int = 0

    @property
    def weight(self) -> float:
        return self.seconds + _BASE_LOAD

    @property
    def move_seconds(self) -> float:
        return _MOVE_SECONDS + self.state_bytes / _FETCH_BYTES


class Placement:
    """Remembers where each share is, and how much work it was."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._workers: dict[Share, str] = {}
        self._loads: dict[Share, Load] = {}
        self._known: frozenset[str] = frozenset()
        self._has_newcomers = False
        self._next_moves = -math.inf

    def count_batch(self, results: Iterable[TaskResult], seconds: float) -> None:
        """Count the work of the shares in a batch of so many seconds."""
        weight = 1 - math.exp(-seconds / _AVERAGE_SECONDS)
        reports = {result.share: result.report for result in results if result.report is not None}
        for share in self._loads.keys() | reports.keys():
            load, report = self._loads.get(share, Load()), reports.get(share)
            worked = report.seconds / max(seconds, 1e-3) if report is not None else 0.0
            size = report.state.bytes if report is not None and report.chunks else load.state_bytes
            average = load.seconds + weight * (worked - load.seconds)
            self._loads[share] = Load(average, size)

    def assign(self, shares: Sequence[Share], workers: Sequence[str]) -> dict[str, list[Share]]:
        """The shares of each worker. There is at least one worker."""
        places = {share: self._workers[share] for share in shares if self._workers.get(share) in workers}
        balance = _Balance(workers, {share: self._loads.get(share, Load()) for share in shares}, places)
        balance.place(set(shares) - places.keys())
        if (most := self._moves_now(frozenset(workers), len(shares))) and balance.move(most):
            self._next_moves = self._clock() + _PAUSE_SECONDS
        self._workers = balance.places
        self._loads = {share: load for share, load in self._loads.items() if share in balance.places}
        assigned: dict[str, list[Share]] = {worker: [] for worker in sorted(workers)}
        for share, worker in sorted(self._workers.items()):
            assigned[worker].append(share)
        return assigned

    def _moves_now(self, workers: frozenset[str], count: int) -> int:
        """How many shares may move now. None while workers come; after that as many as they need."""
        now = self._clock()
        if workers - self._known:
            self._has_newcomers = bool(self._known)
            self._next_moves = now + (_SETTLE_SECONDS if self._known else _PAUSE_SECONDS)
        self._known = workers
        if now < self._next_moves:
            return 0
        most = count if self._has_newcomers else max(1, int(count * _MOST_MOVED))
        self._has_newcomers = False
        return most


class _Balance:
    """Loads and places while they are worked out. Names decide equal choices, so that the same loads give the same
    places.
    """

    def __init__(self, workers: Sequence[str], loads: dict[Share, Load], places: dict[Share, str]) -> None:
        self.places = places
        self._loads = loads
        self._work = dict.fromkeys(sorted(workers), 0.0)
        self._own: dict[str, set[Share]] = {worker: set() for worker in self._work}
        for share, worker in places.items():
            self._put(share, worker)

    def place(self, shares: Iterable[Share]) -> None:
        """The largest first, each where there is the least work."""
        for share in sorted(shares, key=lambda placed: (-self._loads[placed].weight, placed)):
            self._put(share, self._least())

    def move(self, most: int) -> int:
        """Make at most so many moves that are worth it: how many."""
        enough = (1 + _TOLERANCE) * sum(self._work.values()) / len(self._work)
        for number in range(most):
            busiest = max(self._work, key=lambda worker: self._work[worker])
            target = self._least()
            if self._work[busiest] <= enough or not self._move_one(busiest, target):
                return number
        return most

    def _move_one(self, source: str, target: str) -> bool:
        """Move the share that gains most, if one is worth it."""
        gains = {share: self._gain(share, source, target) for share in sorted(self._own[source])}
        best = max(gains, key=lambda share: gains[share])
        if gains[best] <= 0:
            return False
        self._own[source].discard(best)
        self._work[source] -= self._loads[best].weight
        self._put(best, target)
        return True

    def _gain(self, share: Share, source: str, target: str) -> float:
        """Return by how much the move lowers the larger load of the two; 0 if the move costs more than it gains."""
        load = self._loads[share]
        gain = self._work[source] - max(self._work[source] - load.weight, self._work[target] + load.weight)
        return gain if gain * _WORTH_SECONDS > load.move_seconds else 0.0

    def _put(self, share: Share, worker: str) -> None:
        self.places[share] = worker
        self._own[worker].add(share)
        self._work[worker] += self._loads[share].weight

    def _least(self) -> str:
        return min(self._work, key=lambda worker: (self._work[worker], len(self._own[worker]), worker))
