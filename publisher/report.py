"""What the publisher says of its work, and when."""

from __future__ import annotations

from math import inf
from time import time
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdc_program.errors import CdcError
    from publisher.inflight import Mark
    from publisher.position import Positions

PROGRESS_SECONDS = 30.0
STALL_SECONDS = 10.0
COMPLAINT_SECONDS = 10.0
WAITING_SECONDS = 2.0  # what is tried again is tried more often

log = structlog.get_logger(__name__)


class Every:
    """Tells when so many seconds have passed again."""

    def __init__(self, seconds: float, now: float) -> None:
        self._seconds = seconds
        self._next = now + seconds

    def is_due(self, now: float) -> bool:
        if now < self._next:
            return False
        self._next = now + self._seconds
        return True


class Report:
    """Counts, and the lines made of them. Times are of one monotonic clock, in seconds."""

    def __init__(self, now: float) -> None:
        self._progress = Every(PROGRESS_SECONDS, now)
        self._stall = Every(STALL_SECONDS, now)
        self._last_acknowledged = (0, now)
        self._said: dict[str, float] = {}
        self._complaint = (-inf, "")
        self.mutations = 0
        self.messages = 0
        self.excluded = 0
        self.bytes = 0
        self.log_latency: float | None = None
        self.filler_rows = 0
        self.filler_rows_seconds = 0.0

    def take(self, marks: Iterable[Mark]) -> None:
        """A filler's row has been reached: all before it is published, and that took so long."""
        for mark in marks:
            if mark.written_at is not None:
                self.log_latency = time() - mark.written_at / 1e6
                self.filler_rows += 1
                self.filler_rows_seconds += self.log_latency

    def progress(self, now: float, positions: Positions, in_flight: int) -> None:
        if self._progress.is_due(now):
            segment, position = positions.published_up_to
            log.info(
                "progress",
                mutations=self.mutations,
                messages=self.messages,
                bytes=self.bytes,
                in_flight=in_flight,
                segment=segment,
                position=position,
                log_latency_seconds=self.log_latency and round(self.log_latency, 3),
            )

    def stall(self, now: float, acknowledged: int, in_flight: int) -> None:
        """Warn regularly while messages are in flight and none is acknowledged."""
        known, since = self._last_acknowledged
        if acknowledged != known or not in_flight:
            self._last_acknowledged = (acknowledged, now)
        elif now - since >= STALL_SECONDS and self._stall.is_due(now):
            log.warning("kafka acknowledges nothing, reading waits", in_flight=in_flight, seconds=round(now - since))

    def complain(self, now: float, error: CdcError, lasts: float = WAITING_SECONDS) -> None:
        """Warn of something that is tried again, now and then; it is waited for so long, or until `settle`."""
        if now - self._said.get(error.code.text, -COMPLAINT_SECONDS) >= COMPLAINT_SECONDS:
            self._said[error.code.text] = now
            log.warning("waiting", code=error.code.text, problem=error.problem, fix=error.fix)
        self._complaint = (now + lasts, f"{error.code.text} {error.problem}")

    def settle(self) -> None:
        """What was complained of is well."""
        self._complaint = (-inf, "")

    def waiting(self, now: float) -> str:
        """What is waited for now; empty if nothing is."""
        until, problem = self._complaint
        if now < until:
            return problem
        known, acknowledged_at = self._last_acknowledged
        if now - acknowledged_at >= STALL_SECONDS:
            return f"Kafka has acknowledged nothing for {now - acknowledged_at:.0f} s (after {known:,} messages)"
        return ""
