"""How far a long reading has come, on stderr if that is a terminal."""

from __future__ import annotations

import sys
import time

_FIRST_SECONDS = 1.0
_EVERY_SECONDS = 0.25
_CLEAR = "\r\x1b[K"


class Progress:
    """Tells nothing of what is done within a second. `is_shown`: no, where the terminal is the output's."""

    def __init__(self, segments: int, *, is_shown: bool = True) -> None:
        self._segments = segments
        self._is_shown = is_shown and sys.stderr.isatty()
        self._next = time.monotonic() + _FIRST_SECONDS
        self._is_on_screen = False

    def at(self, segment: int, mutations: int) -> None:
        """Reading the segment of that number (from 1), with so many mutations behind it in all."""
        if not self._is_shown or mutations % 256 or (now := time.monotonic()) < self._next:
            return
        self._next = now + _EVERY_SECONDS
        self._is_on_screen = True
        sys.stderr.write(f"{_CLEAR}segment {segment} of {self._segments}, {mutations} mutations")
        sys.stderr.flush()

    def clear(self) -> None:
        """Before anything else is written to the terminal."""
        if self._is_on_screen:
            self._is_on_screen = False
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
