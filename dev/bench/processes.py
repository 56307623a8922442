"""CPU and memory of a process and all its descendants, sampled while they run."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, NamedTuple, Self

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

SAMPLE_SECONDS = 0.25
MB = 1_000_000


class Usage(NamedTuple):
    """The use of CPU and memory of some processes."""

    # The user and system time of all processes, in s.
    cpu_seconds: float
    # The largest sum of their PSS, in bytes.
    peak_bytes: int


class ProcessTree:
    """Watches a process and its descendants from a thread of its own; a context manager.

    kind_of: the kind of a process. peak_by_kind: the PSS in bytes of each kind, when that of all was largest.
    A descendant that ended between two samples counts with its last sample.
    """

    def __init__(self, pid: int, kind_of: Callable[[psutil.Process], str] = lambda process: process.name()) -> None:
        self._root = psutil.Process(pid)
        self._kind_of = kind_of
        self.peak_by_kind: dict[str, int] = {}
        self._cpu: dict[tuple[int, float], float] = {}
        self._peak = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def usage(self) -> Usage:
        """Return what all have used until now."""
        self._sample()
        return Usage(sum(self._cpu.values()), self._peak)

    def by_kind(self) -> dict[str, float]:
        """The CPU seconds of all processes that run now, by kind."""
        found: dict[str, float] = {}
        for process in self._running():
            with contextlib.suppress(psutil.NoSuchProcess):
                kind = self._kind_of(process)
                found[kind] = found.get(kind, 0.0) + sum(process.cpu_times()[:2])
        return found

    def _run(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            self._sample()

    def _sample(self) -> None:
        found: dict[str, int] = {}
        for process in self._running():
            with contextlib.suppress(psutil.NoSuchProcess):
                self._cpu[process.pid, process.create_time()] = sum(process.cpu_times()[:2])
                kind = self._kind_of(process)
                found[kind] = found.get(kind, 0) + process.memory_full_info().pss
        total = sum(found.values())
        if total > self._peak:
            self._peak, self.peak_by_kind = total, found

    def of_kind(self, kind: str) -> list[int]:
        """The ids of the processes of a kind that run now."""
        found = []
        for process in self._running():
            with contextlib.suppress(psutil.NoSuchProcess):
                if self._kind_of(process) == kind:
                    found.append(process.pid)
        return found

    def _running(self) -> list[psutil.Process]:
        try:
            return [self._root, *self._root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


def wait_until_idle(seconds: float = 3.0, share: float = 0.2, limit: float = 120.0) -> float:
    """Wait until the machine has used less than `share` of its CPU for `seconds`, or for `limit` seconds at most; the
    share that it used last.
    """
    deadline = time.monotonic() + limit
    while (used := psutil.cpu_percent(seconds) / 100) > share and time.monotonic() < deadline:
        pass
    return used
