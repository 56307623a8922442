"""The settings that the fold goes by."""

from __future__ import annotations

from typing import NamedTuple

PURGED_PER_CHUNK = 10_000  # as many as a chunk has rows: the rest waits for the next one


class FoldRules(NamedTuple):
    """reorder_ms: how long, by the brokers' clock, a write waits for those that belong before it.
    purge_margin_seconds: how much longer than gc_grace_seconds a tombstone is kept.
    stalled_publisher_ms: a publisher unheard of for longer is reported. forgotten_publishers: those that will not come
    back.
    max_dead_letters: as many raw messages of a raw partition may lack at a time.
    keep_time_ms: a chunk that changes nothing else stores the time once it has moved on by so much.
    max_changes, max_bytes: how many rows, and how many bytes of them, one chunk looks at or changes at most, about.
    """

    reorder_ms: int = 0
    purge_margin_seconds: int = 3600
    stalled_publisher_ms: int = 3_600_000
    forgotten_publishers: frozenset[bytes] = frozenset()
    keep_time_ms: int = 600_000
    purged_per_chunk: int = PURGED_PER_CHUNK
    max_dead_letters: int = 100
    max_changes: int = 40_000
    max_bytes: int = 64 * 1024 * 1024


DEFAULT_RULES = FoldRules()
