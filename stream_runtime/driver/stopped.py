"""The source partitions that cannot continue. Each waits for its next try, and the others continue without it.

A stopped source partition is not assigned to a worker until its next try is due. Then it is assigned in each batch like
any other, until it fails again or has folded the messages at which it stopped.
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

    from stream_runtime.records import SourcePartition


class Failure(NamedTuple):
    """Why a source partition cannot go on.

    offsets: the first and the next offset of the messages that were being folded; None if there were none.
    trace: of an unexpected exception, without row values.
    """

    error: CdcError
    offsets: tuple[int, int] | None = None
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """A stopped source partition.

    since: the time of the first failure (s since 1970). attempts: how often it has failed in a row.
    next_try: of the registry's clock; None while it is being tried.
    """

    failure: Failure
    since: float
    attempts: int
    next_try: float | None


class StoppedPartitions:
    """The driver's registry of stopped source partitions. Other threads may read it and call `retry`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._wall = wall
        self._stops: dict[SourcePartition, Stop] = {}
        self._lock = threading.Lock()

    def all(self) -> dict[SourcePartition, Stop]:
        """A copy, in the order of the source partitions."""
        with self._lock:
            return dict(sorted(self._stops.items()))

    def may_run(self, partition: SourcePartition) -> bool:
        """Whether it works, or is being tried."""
        with self._lock:
            stop = self._stops.get(partition)
            return stop is None or stop.next_try is None

    def stop(self, partition: SourcePartition, failure: Failure) -> Stop:
        """Stop a source partition that has failed. The pause before its next try grows; it is short again for another
        code.
        """
        with self._lock:
            before = self._stops.get(partition)
            since = self._wall() if before is None else before.since
            is_same = before is not None and before.failure.error.code is failure.error.code
            attempts = before.attempts + 1 if before is not None and is_same else 1
            next_try = self._clock() + pauses(failure.error.code).after(attempts)
            made = self._stops[partition] = Stop(failure, since, attempts, next_try)
            return made

    def advance(self, partition: SourcePartition, end: int) -> Stop | None:
        """Note that the partition has folded the messages before the offset `end`. Return the stop that this ends,
        if any.
        """
        with self._lock:
            stop = self._stops.get(partition)
            if stop is None or (stop.failure.offsets is not None and end < stop.failure.offsets[1]):
                return None
            return self._stops.pop(partition)

    @property
    def has_due_try(self) -> bool:
        """Whether begin_tries would find one."""
        with self._lock:
            now = self._clock()
            return any(stop.next_try is not None and stop.next_try <= now for stop in self._stops.values())

    def begin_tries(self) -> set[SourcePartition]:
        """Return the source partitions whose next try is due now; from here on they are being tried."""
        with self._lock:
            now = self._clock()
            due = {each for each, stop in self._stops.items() if stop.next_try is not None and stop.next_try <= now}
            for partition in due:
                self._stops[partition] = replace(self._stops[partition], next_try=None)
            return due

    def retry(self, partitions: Iterable[SourcePartition] | None = None) -> list[SourcePartition]:
        """Make the next try of these, or of all, due now: those that are stopped and were waiting."""
        with self._lock:
            named = self._stops if partitions is None else set(partitions) & self._stops.keys()
            found = sorted(each for each in named if self._stops[each].next_try is not None)
            for partition in found:
                self._stops[partition] = replace(self._stops[partition], next_try=self._clock())
            return found

    def seconds_to_next_try(self, stop: Stop) -> float:
        """0 while it is being tried."""
        return 0.0 if stop.next_try is None else max(0.0, stop.next_try - self._clock())

    def forget_all_but(self, partitions: Collection[SourcePartition]) -> None:
        """Forget source partitions whose topic was deleted."""
        with self._lock:
            for gone in self._stops.keys() - set(partitions):
                del self._stops[gone]
