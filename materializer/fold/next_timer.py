"""Find when a state has work without new writes: the next expiry, or the next write to leave the reorder buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from materializer.rows.keys import (
    CLOCK,
    EXPIRY,
    EXPIRY_END,
    REORDER_TIMER,
    REORDER_TIMER_END,
    split_timer_key,
    timer_key,
)

if TYPE_CHECKING:
    from stream_runtime.state.reader import StateReader


def next_timer_ms(state: StateReader, reorder_ms: int) -> int | None:
    """The first time of raw messages (ms) at which any message makes the fold emit or store something; None without
    timers. Purge timers do not count: a purge changes nothing visible.
    """
    reached = int.from_bytes(state.get(CLOCK) or b"", "big") // 1000
    times = []
    expiry = next(state.scan(timer_key(EXPIRY, reached, b""), EXPIRY_END), None)
    if expiry is not None:
        times.append(split_timer_key(expiry[0])[0] * 1000 + reorder_ms)
    reorder = next(state.scan(REORDER_TIMER, REORDER_TIMER_END), None)
    if reorder is not None:
        times.append(split_timer_key(reorder[0])[0] + reorder_ms)
    return min(times, default=None)
