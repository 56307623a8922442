"""The settings of the fold."""

from __future__ import annotations

from typing import NamedTuple

PURGED_PER_CHUNK = 10_000  # entries that one chunk purges at most; the rest waits for the next chunk


class FoldSettings(NamedTuple):
    """Settings of the fold."""

    # How long (ms), by the brokers' clock, a write waits in the reorder buffer for earlier writes.
    reorder_ms: int = 0
    # How much longer than gc_grace_seconds a tombstone is kept.
    purge_margin_seconds: int = 3600
    # A publisher that has sent nothing for longer (ms) is reported as stalled.
    stalled_publisher_ms: int = 3_600_000
    # The host ids of publishers that will not come back.
    forgotten_publishers: frozenset[bytes] = frozenset()
    # A chunk without other changes stores the time once it has advanced by this much (ms).
    keep_time_ms: int = 600_000
    # How many entries one chunk purges at most.
    purged_per_chunk: int = PURGED_PER_CHUNK
    # How far apart (ms) hosts may execute one TRUNCATE.
    truncate_ms: int = 15_000
    # Whether the rows of a dropped table end.
    ends_dropped: bool = True
    # How many unreadable raw messages a raw partition may have at a time.
    max_dead_letters: int = 100
    # About how many rows one chunk reads or changes at most.
    max_changes: int = 40_000
    # About how many bytes of rows one chunk reads or changes at most.
    max_bytes: int = 64 * 1024 * 1024


DEFAULT_FOLD_SETTINGS = FoldSettings()
