"""Counts what the publisher has done, and logs progress, stalls and problems that are retried."""

from __future__ import annotations

from math import inf
from time import time
from typing import TYPE_CHECKING, NamedTuple

import structlog

from publisher.interval import Interval

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cassandra_storage.formats.commitlog.segment import CommitLogPosition
    from cdc_common.errors.codes import CdcError
    from cdc_native.formats.batches import Batch
    from publisher.inflight import PendingPosition

PROGRESS_SECONDS = 30.0
STALL_SECONDS = 10.0
WARNING_SECONDS = 10.0
PROBLEM_SECONDS = 2.0  # retries come more often than this
SILENCE_SECONDS = 1.0  # most answers come at once

log = structlog.get_logger(__name__)


class _Stall(NamedTuple):
    """The state at the last progress: the number of acknowledged messages, and the oldest pending position.
    `is_partial`: Kafka has acknowledged other messages since then.
    """

    since: float
    acknowledged: int = 0
    oldest: object = None
    is_partial: bool = False

    def text(self, now: float) -> str:
        seconds = f"for {now - self.since:.0f} s (after {self.acknowledged:,} messages)"
        if self.is_partial:
            return (
                f"Kafka acknowledges messages, but not the oldest one {seconds}: one of its partitions may be offline"
            )
        return f"Kafka has acknowledged nothing {seconds}"


class Progress:
    """Counters since the start, and the log lines made of them. Times are of one monotonic clock, in seconds."""

    def __init__(self, now: float) -> None:
        self._progress_interval = Interval(PROGRESS_SECONDS, now)
        self._stall_interval = Interval(STALL_SECONDS, now)
        self._stall = _Stall(now)
        self._warned_at: dict[str, float] = {}
        self._problem = ""
        self._problem_until = -inf
        self._silence = ""
        self._silence_until = -inf
        self.mutations = 0
        self.native_mutations = 0
        self.messages = 0
        self.excluded_updates = 0
        self.bytes = 0
        self.log_latency: float | None = None
        self.filler_rows = 0
        self.filler_rows_seconds = 0.0

    def count_mutation(self, excluded_updates: int) -> None:
        self.mutations += 1
        self.excluded_updates += excluded_updates

    def count_native_mutations(self, batch: Batch) -> None:
        """Count mutations that the native core has split."""
        self.mutations += batch.mutations
        self.native_mutations += batch.mutations
        self.excluded_updates += batch.excluded_updates

    def measure_filler_rows(self, positions: Iterable[PendingPosition]) -> None:
        """Measure the time from the write of a filler's row until all of the log before it is published. It is 0 if the
        writer's clock is ahead: a sum that Prometheus scrapes must not decrease.
        """
        for position in positions:
            if position.written_at is not None:
                self.log_latency = max(0.0, time() - position.written_at / 1e6)
                self.filler_rows += 1
                self.filler_rows_seconds += self.log_latency

    def log_progress(self, now: float, published_up_to: CommitLogPosition, in_flight: int) -> None:
        if self._progress_interval.is_due(now):
            segment, position = published_up_to
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

    def check_stall(self, now: float, acknowledged: int, in_flight: int, oldest: object) -> None:
        """Warn regularly while messages are in flight and Kafka acknowledges none of them, or all but the `oldest`: if
        one raw partition is offline, the position stays before its messages.
        """
        stall = self._stall
        is_moving = acknowledged != stall.acknowledged and (oldest is None or oldest is not stall.oldest)
        if is_moving or not in_flight:
            self._stall = _Stall(now, acknowledged, oldest)
            return
        self._stall = stall._replace(is_partial=acknowledged != stall.acknowledged)
        if now - stall.since >= STALL_SECONDS and self._stall_interval.is_due(now):
            log.warning("the position does not move", in_flight=in_flight, problem=self._stall.text(now))

    def report_problem(self, now: float, error: CdcError, lasts: float = PROBLEM_SECONDS) -> None:
        """Warn of a problem that is retried, at most every WARNING_SECONDS. The status shows it for `lasts` seconds, or
        until `clear_problem`.
        """
        if now - self._warned_at.get(error.code.text, -WARNING_SECONDS) >= WARNING_SECONDS:
            self._warned_at[error.code.text] = now
            log.warning("waiting", code=error.code.text, problem=error.problem, fix=error.fix)
        self._problem = f"{error.code.text} {error.problem}"
        self._problem_until = now + lasts

    def note_silence(self, now: float, since: float) -> None:
        """A call to Kafka has had no answer since then. The status shows it after SILENCE_SECONDS, unless it shows a
        reported problem.
        """
        if now - since >= SILENCE_SECONDS and now >= self._problem_until:
            self._silence = f"Kafka has not answered for {now - since:.0f} s"
            self._silence_until = now + SILENCE_SECONDS

    def clear_problem(self) -> None:
        """The reported problem is solved."""
        self._problem_until = -inf

    def current_problem(self, now: float) -> str:
        """The reason why the publisher waits now; empty if it does not wait."""
        if now < self._problem_until:
            return self._problem
        if now < self._silence_until:
            return self._silence
        return self._stall.text(now) if now - self._stall.since >= STALL_SECONDS else ""
