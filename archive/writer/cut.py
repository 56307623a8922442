"""When a cut ends. It ends between two batches of messages."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class CutSettings(NamedTuple):
    """A cut ends at the first of these."""

    # The number of rows.
    rows: int
    # The bytes of keys and values.
    bytes: int
    # The seconds since its first message was read.
    seconds: float
    # The number of files of a cut, so that a file event is never too large.
    files: int
    # Whether a message with a schema that the cut does not have yet ends it.
    at_new_schema: bool


class CutClock:
    """Whether the open cut of a share ends."""

    def __init__(self, settings: CutSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._known: set[int] = set()
        self.restart()

    def restart(self) -> None:
        """Begin another cut."""
        self._rows = self._bytes = 0
        self._began: float | None = None
        self._has_new_schema = False

    def add(self, rows: int, size: int, schemas: set[int]) -> None:
        """Count a batch. schemas: all that the task has met."""
        if self._began is None:
            self._began = self._clock()
        self._rows += rows
        self._bytes += size
        self._has_new_schema |= bool(self._known) and not schemas <= self._known
        self._known |= schemas

    def is_over(self, files: int) -> bool:
        """Whether the cut ends now. files: how many it has."""
        own = self._settings
        if self._began is None:
            return False
        return (
            self._rows >= own.rows
            or self._bytes >= own.bytes
            or files >= own.files
            or self._clock() - self._began >= own.seconds
            or (own.at_new_schema and self._has_new_schema)
        )
