"""The progress of a long run of a command, on stderr if that is a terminal."""

from __future__ import annotations

import sys
import time

_FIRST_SECONDS = 1.0
_EVERY_SECONDS = 0.25
_CLEAR = "\r\x1b[K"


class Progress:
    """Shown after one second. `is_shown` is False if the output goes to the terminal."""

    def __init__(self, *, is_shown: bool = True) -> None:
        self._is_shown = is_shown and sys.stderr.isatty()
        self._next = time.monotonic() + _FIRST_SECONDS
        self._is_on_screen = False

    def show(self, text: str) -> None:
        """Show how far the run is, unless it was shown a moment ago."""
        if not self._is_shown or (now := time.monotonic()) < self._next:
            return
        self._next = now + _EVERY_SECONDS
        self._is_on_screen = True
        sys.stderr.write(f"{_CLEAR}{text}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Call it before other output to the terminal."""
        if self._is_on_screen:
            self._is_on_screen = False
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
