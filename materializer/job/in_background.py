"""Calls in a background thread, for which the caller waits only briefly."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class InBackground(Generic[T]):
    """One thread and its calls, each with a name. seconds: how long `finished` waits for newly started calls."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(1, "background")
        self._running: dict[str, Future[T]] = {}
        self._new: list[Future[T]] = []

    @property
    def running(self) -> set[str]:
        """The calls that `finished` has not given yet."""
        return set(self._running)

    def start(self, name: str, call: Callable[[], T]) -> None:
        """Unless a call of this name is running already."""
        if name not in self._running:
            self._running[name] = self._threads.submit(call)
            self._new.append(self._running[name])

    def finished(self) -> dict[str, Future[T]]:
        """The calls that have ended since, each once."""
        wait(self._new, self._seconds)
        self._new = []
        ended = {name: future for name, future in self._running.items() if future.done()}
        for name in ended:
            del self._running[name]
        return ended
