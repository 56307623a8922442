"""What the publisher says of its work, and when."""

from __future__ import annotations

from math import inf
from time import time
from typing import TYPE_CHECKING, NamedTuple

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


class _Stalled(NamedTuple):
    """Since when, with so many messages acknowledged, the oldest has not been; `is_partial` if others have been."""

    since: float
    acknowledged: int = 0
    oldest: object = None
    is_partial: bool = False

    def text(self, now: float) -> str:
        seconds = f"for {now - self.since:.0f} s (after {self.acknowledged:,} messages)"
        if self.is_partial:
            return f"Kafka acknowledges messages, but has not the oldest one {seconds}: a partition may be offline"
        return f"Kafka has acknowledged nothing {seconds}"


class Report:
    """Counts, and the lines made of them. Times are of one monotonic clock, in seconds."""

    def __init__(self, now: float) -> None:
        self._progress = Every(PROGRESS_SECONDS, now)
        self._stall = Every(STALL_SECONDS, now)
        self._stalled = _Stalled(now)
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
        """A filler's row has been reached: all before it is published, and that took so long. Where the writer's clock
        is ahead of ours it took nothing, for a sum that is scraped must not go back.
        """
        for mark in marks:
            if mark.written_at is not None:
                self.log_latency = max(0.0, time() - mark.written_at / 1e6)
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

    def stall(self, now: float, acknowledged: int, in_flight: int, oldest: object) -> None:
        """Warn regularly while messages are in flight and none is acknowledged, or all but the `oldest` are: one
        partition may be away alone, and the position stays before what is for it.
        """
        stalled = self._stalled
        is_moving = acknowledged != stalled.acknowledged and (oldest is None or oldest is not stalled.oldest)
        if is_moving or not in_flight:
            self._stalled = _Stalled(now, acknowledged, oldest)
            return
        self._stalled = stalled._replace(is_partial=acknowledged != stalled.acknowledged)
        if now - stalled.since >= STALL_SECONDS and self._stall.is_due(now):
            log.warning("the position stands still", in_flight=in_flight, problem=self._stalled.text(now))

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
        return self._stalled.text(now) if now - self._stalled.since >= STALL_SECONDS else ""
