"""The status that every job has. A job that shows more makes a subclass."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from cdc_common.program.metrics import counters, gauges
from stream_runtime.driver.scope import pauses
from stream_runtime.driver.status import (
    RETRIES,
    SPARK_RESTARTS,
    lag_metrics,
    least_hours_left,
    stop_metrics,
    stops_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client.metrics_core import Metric

    from stream_runtime.driver.lag_watch import LagWatch
    from stream_runtime.driver.stopped import StoppedShares
    from stream_runtime.query.progress import Progress
    from stream_runtime.records import Share
    from stream_runtime.words import Words
    from stream_runtime.worker.task import TaskResult


class StreamStatus:
    """Filled by the driver, read by the threads of the operations port."""

    def __init__(self, group: str, words: Words, stopped: StoppedShares, lags: LagWatch) -> None:
        self.stopped = stopped
        self._group = group
        self._words = words
        self._lags = lags
        self._waiting = ""
        self._shares: Sequence[Share] = ()
        self._counts: Counter[str] = Counter()
        self._progress: Progress | None = None

    def set_shares(self, shares: Sequence[Share], _pending: int = 0) -> None:
        """Set the present shares."""
        self._shares = shares
        self._lags.set_shares(shares)

    def wait_because(self, problem: str) -> None:
        """The driver waits; or does not, if the problem is empty."""
        self._waiting = problem

    def count_restart(self) -> None:
        """Spark's query has failed and is started again."""
        self._counts["spark_restarts"] += 1

    def count_batch(self, results: Sequence[TaskResult], progress: Progress | None = None) -> None:
        """progress: of the last batch that Spark has ended, which may be the one before."""
        self._progress = progress
        self._counts["batches"] += 1
        for result in results:
            if result.report is not None:
                self._counts["messages"] += result.report.messages
            self._counts["retries"] += retries_of(result)
        if any(result.error is not None for result in results):
            self._lags.measure_soon()

    def as_json(self) -> dict[str, Any]:
        """Times are in seconds and offsets in messages. `stopped` has one object for each stopped share."""
        now, lags = time.time(), self._lags.latest
        return {
            "group": self._group,
            "partitions": len(self._shares),
            "waiting": self._waiting,
            **{name: self._counts[name] for name in ("batches", "messages")},
            "lag": sum(lag.messages for lag in lags.values()),
            "least_hours_left": least_hours_left(lags, now),
            "stopped": stops_json(self._words, self.stopped, lags, now),
        }

    def metrics(self) -> Iterator[Metric]:
        """Yield the Prometheus metrics of the job."""
        now, prefix = time.time(), self._words.metrics
        yield from counters(
            prefix,
            (
                ("batches", "Batches completed.", self._counts["batches"]),
                ("messages", f"Messages {self._words.done}.", self._counts["messages"]),
                ("retries", RETRIES, self._counts["retries"]),
                ("spark_restarts", SPARK_RESTARTS, self._counts["spark_restarts"]),
            ),
        )
        waiting = float(bool(self._waiting))
        yield from gauges(
            prefix,
            (
                ("partitions", "Number of source partitions.", len(self._shares)),
                ("waiting", "1 while the driver waits for Kafka.", waiting),
            ),
        )
        yield from stop_metrics(self._words, now, self.stopped.all())
        yield from lag_metrics(prefix, f"Messages that are not {self._words.done} yet.", now, self._lags.latest)


def retries_of(result: TaskResult) -> int:
    """How many errors of a share a retry heals, in one batch."""
    renewed = 0 if result.report is None else result.report.renewed
    return renewed + (result.error is not None and pauses(result.error.code).heals_seconds > 0)
