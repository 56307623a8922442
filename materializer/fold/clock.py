"""The time of a raw partition: the brokers' time and, `reorder_ms` earlier, the time at which its rows are shown."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from materializer.rows.keys import CLOCK, NOW

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from materializer.records import RawRecord
    from materializer.rows.overlay import Overlay


class RunClock(NamedTuple):
    """The time of one table's messages in a chunk, in ms of the raw partition's time."""

    # The time that is done.
    start_ms: int
    # The time up to which the messages are folded.
    clock_ms: int

    @property
    def second(self) -> int:
        """clock_ms in whole seconds."""
        return self.clock_ms // 1000

    @property
    def start_second(self) -> int:
        return self.start_ms // 1000


class Clock:
    """The times of a chunk, in ms.

    now_ms: the largest timestamp that the brokers have given to a record; it never goes back. arrival_times_ms: `now`
    at the arrival of each record. clock_ms: writes are folded and rows expire up to this time; it never goes back
    either, even if `reorder_ms` is changed. start_ms: the clock before the chunk.
    """

    __slots__ = ("_now_before", "_overlay", "_reorder_ms", "arrival_times_ms", "clock_ms", "now_ms", "start_ms")

    def __init__(self, overlay: Overlay, records: Sequence[RawRecord], reorder_ms: int) -> None:
        self._overlay = overlay
        self._reorder_ms = reorder_ms
        self._now_before = _read(overlay, NOW, 0)
        stamps = (record.timestamp_ms for record in records)
        self.arrival_times_ms = list(accumulate(stamps, max, initial=self._now_before))[1:]
        self.now_ms = self.arrival_times_ms[-1]
        self.start_ms = _read(overlay, CLOCK, self._now_before)
        self.clock_ms = max(self.start_ms, self.now_ms - reorder_ms)

    @property
    def second(self) -> int:
        """clock_ms in whole seconds."""
        return self.clock_ms // 1000

    def split(self, first_arrivals_ms: Iterable[int]) -> list[RunClock]:
        """The chunk's time, divided among the tables whose messages it holds.

        A table's time ends when the first message of the table that replaced it arrives: `first_arrivals_ms`, rising,
        of all tables but the first.
        """
        clocks, start_ms = [], self.start_ms
        for arrival_ms in first_arrivals_ms:
            clocks.append(RunClock(start_ms, max(start_ms, arrival_ms - self._reorder_ms)))
            start_ms = clocks[-1].clock_ms
        return [*clocks, RunClock(start_ms, self.clock_ms)]

    def has_advanced_by(self, ms: int) -> bool:
        """Is `now` at least this much later than the stored one, or is none stored?"""
        return self.now_ms - self._now_before >= ms or self._now_before == 0

    def store(self) -> None:
        """Store both times: the records are folded."""
        for key, value in ((NOW, self.now_ms), (CLOCK, self.clock_ms)):
            if value != _read(self._overlay, key, -1):
                self._overlay.put(key, value.to_bytes(8, "big"))

    def store_progress(self, reached_ms: int) -> None:
        """Store how far the clock has advanced, without the arrival of the records: they are not folded yet."""
        if reached_ms != self.start_ms:
            self._overlay.put(CLOCK, reached_ms.to_bytes(8, "big"))


def _read(overlay: Overlay, key: bytes, default: int) -> int:
    stored = overlay.get(key)
    return default if stored is None else int.from_bytes(stored, "big")
