"""Distinguishes a raw partition that was quiet from a broker whose clock is ahead.

The time of a raw partition comes from one clock: that of the broker that leads it. Two others are its witnesses: the
worker's clock, and the clocks of the publishers' nodes, which heartbeats carry. After any quiet time the worker's clock
has reached the brokers' time; a broker that is ahead is ahead of both witnesses.
"""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from materializer.fold.result import ChunkResult
    from materializer.records import RawPartition
    from stream_runtime.state.changelog import Head

_LAST_MS = 253_402_300_799_999  # of the year 9999, datetime's last


class ClockCheck:
    """stream_runtime.exactly_once.partition_task.Check."""

    def __init__(self, max_ahead_ms: float) -> None:
        self._max_ahead_ms = max_ahead_ms

    def __call__(self, partition: RawPartition, before: Head | None, result: ChunkResult, worker_ms: float) -> None:
        check_clock(partition, before, result, worker_ms, self._max_ahead_ms)


def check_clock(
    raw_partition: RawPartition, before: Head | None, result: ChunkResult, worker_ms: float, max_ahead_ms: float
) -> None:
    """Raise CdcError(CLOCK_AHEAD) if a chunk moves the time of the raw partition too far ahead of both witnesses.

    before: the state's head before the chunk; a time that it has reached was accepted. worker_ms: this worker's wall
    clock. max_ahead_ms: how far the brokers' time may be ahead.
    """
    ahead_ms = result.now_ms - max(worker_ms, result.publishers_ms)
    if ahead_ms <= max_ahead_ms or (before is not None and result.now_ms <= before.now_ms):
        return
    publishers = f"most publishers' clocks {_utc(result.publishers_ms)}" if result.publishers_ms else ""
    raise CdcError(
        Code.CLOCK_AHEAD,
        f"The time of {raw_partition} would be {_utc(result.now_ms)}, {ahead_ms / 3_600_000:.1f} h ahead. It comes "
        f"from the raw messages' timestamps, which the brokers set. The clock of this worker, {socket.gethostname()}, "
        f"shows {_utc(worker_ms)}, {publishers or 'and no heartbeat has brought a clock of most publishers'}.",
        "Correct the clock that is wrong. The raw partition continues when this worker's clock reaches that time; "
        "continuing earlier would expire rows early. To accept it now, set a larger "
        "materializer.max_clock_ahead_hours.",
    )


def _utc(time_ms: float) -> str:
    return f"{datetime.fromtimestamp(min(time_ms, _LAST_MS) // 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
