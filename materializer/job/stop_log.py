"""Logs each raw partition when it stops, every 10 minutes while it is stopped, and when it continues."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import structlog

from materializer.job.scope import pauses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cdc_program.errors import Code
    from materializer.job.stopped import Stop
    from materializer.records import RawPartition

_logger = structlog.get_logger(__name__)
_REPEAT_SECONDS = 600.0
_MOST_NAMED = 20  # raw partitions in one line


class StopLog:
    """Raw partitions that stop in one batch for the same reason share a line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._logged: dict[RawPartition, tuple[Code, float]] = {}

    def log_stops(self, stops: Mapping[RawPartition, Stop]) -> None:
        """Log what has just failed, except another failure with the same code."""
        self._log("raw partition stopped", {each: stop for each, stop in stops.items() if self._is_news(each, stop)})

    def remind(self, stops: Mapping[RawPartition, Stop]) -> None:
        """Log each of all stopped raw partitions whose last line is 10 minutes old."""
        latest = self._clock() - _REPEAT_SECONDS
        old = {each: stop for each, stop in stops.items() if each in self._logged and self._logged[each][1] <= latest}
        self._log("raw partition still stopped", old, with_trace=False)
        for gone in self._logged.keys() - stops.keys():
            del self._logged[gone]

    def log_resumed(self, raw_partition: RawPartition, stop: Stop) -> None:
        if self._logged.pop(raw_partition, None) is not None:
            seconds = max(0.0, time.time() - stop.since)
            _logger.info(
                "raw partition resumed",
                raw_partition=str(raw_partition),
                code=stop.failure.error.code.text,
                stopped_seconds=round(seconds, 1),
            )

    def _is_news(self, raw_partition: RawPartition, stop: Stop) -> bool:
        code = stop.failure.error.code
        if stop.attempts == 1 and pauses(code).at_once:
            return False
        return raw_partition not in self._logged or self._logged[raw_partition][0] is not code

    def _log(self, event: str, stops: Mapping[RawPartition, Stop], *, with_trace: bool = True) -> None:
        groups: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
        for raw_partition, stop in stops.items():
            error, offsets, trace = stop.failure
            at = f" at offset {offsets[0]}" if offsets else ""
            groups[error.code.text, error.problem, error.fix, trace].append(f"{raw_partition}{at}")
            self._logged[raw_partition] = error.code, self._clock()
        for (code, problem, fix, trace), names in groups.items():
            more: dict[str, Any] = {"trace": trace} if trace and with_trace else {}
            if len(names) > _MOST_NAMED:
                more["and_others"] = len(names) - _MOST_NAMED
            _logger.error(event, code=code, raw_partitions=names[:_MOST_NAMED], problem=problem, fix=fix, **more)
