"""The settings of the fold."""

from __future__ import annotations

from typing import NamedTuple

PURGED_PER_CHUNK = 10_000  # entries that one chunk purges at most; the rest waits for the next chunk


class FoldSettings(NamedTuple):
    """reorder_ms: how long, by the brokers' clock, a write waits in the reorder buffer for earlier writes.
    purge_margin_seconds: how much longer than gc_grace_seconds a tombstone is kept.
    stalled_publisher_ms: a publisher that has sent nothing for longer is reported as stalled.
    forgotten_publishers: the host ids of publishers that will not come back.
    keep_time_ms: a chunk without other changes stores the time once it has advanced by this much.
    truncate_ms: how far apart hosts may execute one TRUNCATE. ends_dropped: whether the rows of a dropped table end.
    max_dead_letters: how many unreadable raw messages a raw partition may have at a time.
    max_changes, max_bytes: about how many rows, and how many bytes of rows, one chunk reads or changes at most.
    """

    reorder_ms: int = 0
    purge_margin_seconds: int = 3600
    stalled_publisher_ms: int = 3_600_000
    forgotten_publishers: frozenset[bytes] = frozenset()
    keep_time_ms: int = 600_000
    purged_per_chunk: int = PURGED_PER_CHUNK
    truncate_ms: int = 15_000
    ends_dropped: bool = True
    max_dead_letters: int = 100
    max_changes: int = 40_000
    max_bytes: int = 64 * 1024 * 1024


DEFAULT_FOLD_SETTINGS = FoldSettings()
