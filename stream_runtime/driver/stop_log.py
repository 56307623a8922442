"""Logs each share when it stops, every 10 minutes while it is stopped, and when it continues.

What heals by itself is a warning at first. It is an error once it lasts for too long (stream_runtime.driver.scope).
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog

from cdc_common.errors.codes import Code
from stream_runtime.driver.scope import pauses
from stream_runtime.words import NEUTRAL, Words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stream_runtime.driver.stopped import Stop
    from stream_runtime.records import Share

_logger = structlog.get_logger(__name__)
_REPEAT_SECONDS = 600.0
_MOST_NAMED = 20  # shares in one line


class _Logged(NamedTuple):
    """The last line about a share. heals: whether it was a warning."""

    code: Code
    at: float
    heals: bool


class StopLog:
    """Shares that stop in one batch for the same reason share a line."""

    def __init__(self, words: Words = NEUTRAL, clock: Callable[[], float] = time.monotonic) -> None:
        self._words = words
        self._clock = clock
        self._logged: dict[Share, _Logged] = {}

    def log_stops(self, stops: Mapping[Share, Stop]) -> None:
        """Log what has just failed, except another failure with the same code."""
        news = {share: stop for share, stop in stops.items() if self._is_news(share, stop)}
        waiting = {share: stop for share, stop in news.items() if _heals(stop)}
        self._log(_logger.warning, f"{self._words.partition} waits", waiting)
        stopped = {share: stop for share, stop in news.items() if share not in waiting}
        self._log(_logger.error, f"{self._words.partition} stopped", stopped)

    def remind(self, stops: Mapping[Share, Stop]) -> None:
        """Log each of all stopped shares whose last line is 10 minutes old."""
        latest = self._clock() - _REPEAT_SECONDS
        old = {
            share: stop for share, stop in stops.items() if share in self._logged and self._logged[share].at <= latest
        }
        self._log(_logger.error, f"{self._words.partition} still stopped", old, with_trace=False)
        for gone in self._logged.keys() - stops.keys():
            del self._logged[gone]

    def log_resumed(self, share: Share, stop: Stop) -> None:
        if self._logged.pop(share, None) is not None:
            seconds = max(0.0, time.time() - stop.since)
            event = f"{self._words.partition} resumed"
            _logger.info(
                event,
                **{self._words.key: str(share)},
                code=stop.failure.error.code.text,
                stopped_seconds=round(seconds, 1),
            )

    def _is_news(self, share: Share, stop: Stop) -> bool:
        code = stop.failure.error.code
        if stop.attempts == 1 and pauses(code).at_once:
            return False
        logged = self._logged.get(share)
        return logged is None or logged.code is not code or (logged.heals and not _heals(stop))

    def _log(
        self, log: Callable[..., None], event: str, stops: Mapping[Share, Stop], *, with_trace: bool = True
    ) -> None:
        groups: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
        for share, stop in stops.items():
            error, offsets, trace = stop.failure
            at = f" at offset {offsets[0]}" if offsets else ""
            groups[error.code.text, error.problem, error.fix, trace].append(f"{share}{at}")
            self._logged[share] = _Logged(error.code, self._clock(), _heals(stop))
        for (code, problem, fix, trace), names in groups.items():
            more: dict[str, Any] = {"trace": trace} if trace and with_trace else {}
            if len(names) > _MOST_NAMED:
                more["and_others"] = len(names) - _MOST_NAMED
            more[f"{self._words.key}s"] = names[:_MOST_NAMED]
            log(event, code=code, problem=problem, fix=fix, **more)


def _heals(stop: Stop) -> bool:
    """Whether the error is still expected to heal by itself."""
    seconds = max(0.0, time.time() - stop.since)  # the clock may have been set back
    return seconds < pauses(stop.failure.error.code).heals_seconds
