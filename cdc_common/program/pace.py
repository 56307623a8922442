"""Holds a rate: of bytes or rows a second."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_PAUSE = 0.2
_STEP_SECONDS = 0.1
_SAVED_SECONDS = 1.0


def _nothing() -> None:
    """Serve nothing during a pause."""


def _all() -> float:
    return 1.0


class Pace:
    """A limit of so many units a second, 0 for none. Pauses are short, and at most a second's units are saved up.

    serve: called before each pause. share: asked before each wait, how much of the rate may be used.
    """

    def __init__(
        self, per_second: float, serve: Callable[[], None] = _nothing, share: Callable[[], float] = _all
    ) -> None:
        self._most = self._rate = per_second
        self._serve = serve
        self._share = share
        self._due = time.monotonic()

    def at_once(self, most: int) -> int:
        """The units that may be used without a pause, at most so many: slow work is done in small steps."""
        return min(most, max(1, round(self._rate * _STEP_SECONDS))) if self._rate else most

    def wait(self, units: int) -> None:
        """Use these units, and sleep until the next ones may be used."""
        if not self._most:
            return
        self._rate = self._most * self._share()
        self._due = max(self._due, time.monotonic() - _SAVED_SECONDS) + units / self._rate
        while (rest := self._due - time.monotonic()) > 0:
            self._serve()
            time.sleep(min(rest, _LONGEST_PAUSE))
