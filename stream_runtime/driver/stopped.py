"""The shares that cannot continue. Each waits for its next try, and the others continue without it.

A stopped share is not assigned to a worker until its next try is due. Then it is assigned in each batch like
any other, until it fails again or has processed the messages at which it stopped.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.errors.codes import CdcError
from stream_runtime.driver.scope import pauses

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from stream_runtime.records import Share


class Failure(NamedTuple):
    """The reason why a share cannot go on."""

    # The error.
    error: CdcError
    # The first and the next offset of the messages that were being processed; None if there were none.
    offsets: tuple[int, int] | None = None
    # The trace of an unexpected exception, without row values.
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """A stopped share."""

    # The last failure.
    failure: Failure
    # The time of the first failure, in seconds since 1970.
    since: float
    # How often it has failed in a row.
    attempts: int
    # When it is tried again, by the registry's clock in seconds; None while it is being tried.
    next_try: float | None


class StoppedShares:
    """The driver's registry of stopped shares. Other threads may read it and call `retry`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._wall = wall
        self._stops: dict[Share, Stop] = {}
        self._lock = threading.Lock()

    def all(self) -> dict[Share, Stop]:
        """A copy, in the order of the shares."""
        with self._lock:
            return dict(sorted(self._stops.items()))

    def may_run(self, share: Share) -> bool:
        """Whether it works, or is being tried."""
        with self._lock:
            stop = self._stops.get(share)
            return stop is None or stop.next_try is None

    def stop(self, share: Share, failure: Failure) -> Stop:
        """Stop a share that has failed. The pause before its next try grows; it is short again for another
        code.
        """
        with self._lock:
            before = self._stops.get(share)
            since = self._wall() if before is None else before.since
            is_same = before is not None and before.failure.error.code is failure.error.code
            attempts = before.attempts + 1 if before is not None and is_same else 1
            next_try = self._clock() + pauses(failure.error.code).after(attempts)
            made = self._stops[share] = Stop(failure, since, attempts, next_try)
            return made

    def advance(self, share: Share, end: int) -> Stop | None:
        """Note that the share has processed the messages before the offset `end`. Return the stop that this ends,
        if any.
        """
        with self._lock:
            stop = self._stops.get(share)
            if stop is None or (stop.failure.offsets is not None and end < stop.failure.offsets[1]):
                return None
            return self._stops.pop(share)

    @property
    def has_due_try(self) -> bool:
        """Whether begin_tries would find one."""
        with self._lock:
            now = self._clock()
            return any(stop.next_try is not None and stop.next_try <= now for stop in self._stops.values())

    def begin_tries(self) -> set[Share]:
        """Return the shares whose next try is due now; from here on they are being tried."""
        with self._lock:
            now = self._clock()
            due = {share for share, stop in self._stops.items() if stop.next_try is not None and stop.next_try <= now}
            for share in due:
                self._stops[share] = replace(self._stops[share], next_try=None)
            return due

    def retry(self, shares: Iterable[Share] | None = None) -> list[Share]:
        """Make the next try of these, or of all, due now: those that are stopped and were waiting."""
        with self._lock:
            named = self._stops if shares is None else set(shares) & self._stops.keys()
            found = sorted(share for share in named if self._stops[share].next_try is not None)
            for share in found:
                self._stops[share] = replace(self._stops[share], next_try=self._clock())
            return found

    def seconds_to_next_try(self, stop: Stop) -> float:
        """0 while it is being tried."""
        return 0.0 if stop.next_try is None else max(0.0, stop.next_try - self._clock())

    def forget_all_but(self, shares: Collection[Share]) -> None:
        """Forget shares whose topic was deleted."""
        with self._lock:
            for gone in self._stops.keys() - set(shares):
                del self._stops[gone]
