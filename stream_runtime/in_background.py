"""Calls in background threads, for which the caller waits only briefly."""

from __future__ import annotations

from collections.abc import Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class InBackground(Generic[K, T]):
    """Threads and their calls, each with a name.

    seconds: how long `finished` waits for newly started calls. threads: how many calls run at once.
    """

    def __init__(self, seconds: float, threads: int = 1) -> None:
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(threads, "background")
        self._running: dict[K, Future[T]] = {}
        self._new: list[Future[T]] = []

    @property
    def running(self) -> set[K]:
        """The calls that `finished` has not given yet."""
        return set(self._running)

    def start(self, name: K, call: Callable[[], T]) -> None:
        """Unless a call of this name is running already."""
        if name not in self._running:
            self._running[name] = self._threads.submit(call)
            self._new.append(self._running[name])

    def forget(self, name: K) -> None:
        """Cancel the call of this name if it has not begun."""
        if name in self._running and self._running[name].cancel():
            del self._running[name]

    def finished(self) -> dict[K, Future[T]]:
        """The calls that have ended since, each once."""
        wait(self._new, self._seconds)
        self._new = []
        ended = {name: future for name, future in self._running.items() if future.done()}
        for name in ended:
            del self._running[name]
        return ended
