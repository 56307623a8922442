"""When a state has something to do by itself: what expires, and held writes whose time has come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from materializer.rows.keys import CLOCK, EXPIRY, EXPIRY_END, HELD_QUEUE, HELD_QUEUE_END, queue_key, split_queue_key

if TYPE_CHECKING:
    from materializer.rows.overlay import StateReader


def next_timer_ms(state: StateReader, reorder_ms: int) -> int | None:
    """The time (ms, of raw messages) from which on a message, whatever it is, makes the fold tell or do something; None
    if nothing waits for time. Purging is left out: nobody sees when it is done.
    """
    reached = int.from_bytes(state.get(CLOCK) or b"", "big") // 1000
    dues = []
    expiry = next(state.scan(queue_key(EXPIRY, reached, b""), EXPIRY_END), None)
    if expiry is not None:
        dues.append(split_queue_key(expiry[0])[0] * 1000 + reorder_ms)
    held = next(state.scan(HELD_QUEUE, HELD_QUEUE_END), None)
    if held is not None:
        dues.append(split_queue_key(held[0])[0] + reorder_ms)
    return min(dues, default=None)
