"""The job's status: the answer of /status, as metrics and as text."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from prometheus_client.core import CounterMetricFamily

from cdc_common.program.metrics import as_time, counters, gauges
from stream_runtime.driver.status import (
    LAG_AGE,
    RETRIES,
    SPARK_RESTARTS,
    age_of,
    lag_metrics,
    least_hours_left,
    stop_metrics,
    stop_text,
    stops_json,
)
from stream_runtime.driver.stream_status import StreamStatus, retries_of
from transformer.faults import STREAM_FAULTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client.metrics_core import Metric

    from stream_runtime.driver.lag_watch import LagWatch
    from stream_runtime.driver.stopped import StoppedShares
    from stream_runtime.query.progress import Progress
    from stream_runtime.worker.task import TaskResult

_PREFIX = "cdc_transformer"
_PER_TRANSFORMER = (
    ("messages", "Messages transformed and sent, including tombstones."),
    ("native_messages", "Messages transformed by the native core; the others take several times the CPU."),
    ("transactions", "Committed transactions that sent messages."),
    ("seconds", "Time spent transforming and committing messages."),
    ("errors", "Times that a partition of the transformer stopped."),
    ("retries", RETRIES),
)


class TransformStatus(StreamStatus):
    """Filled by the driver, read by the threads of the operations port."""

    def __init__(self, group: str, stopped: StoppedShares, lags: LagWatch) -> None:
        super().__init__(group, STREAM_FAULTS.words, stopped, lags)
        self._by_transformer: dict[str, Counter[str]] = defaultdict(Counter)
        self._seconds: dict[str, float] = defaultdict(float)

    def count_batch(self, results: Sequence[TaskResult], progress: Progress | None = None) -> None:
        super().count_batch(results, progress)
        for result in results:
            transformer = result.share.reader
            counts = self._by_transformer[transformer]
            if result.report is not None:
                counts["messages"] += result.report.changes
                counts["native_messages"] += result.report.native
                counts["transactions"] += result.report.chunks
                self._seconds[transformer] += result.report.seconds
            counts["errors"] += result.error is not None
            counts["retries"] += retries_of(result)

    def as_json(self) -> dict[str, Any]:
        """Times are in seconds and offsets in messages. `stopped` has one object for each stopped partition."""
        now, lags = time.time(), self._lags.latest
        age = age_of(self._lags.measured_at, now)
        return {
            "group": self._group,
            "partitions": len(self._shares),
            "waiting": self._waiting,
            "batches": self._counts["batches"],
            "transformers": {name: dict(counts) for name, counts in sorted(self._by_transformer.items())},
            "lag": sum(lag.messages for lag in lags.values()),
            "lag_measured_seconds_ago": None if age is None else round(age, 1),
            "least_hours_left": least_hours_left(lags, now),
            "spark": None if self._progress is None else self._progress.as_json(),
            "stopped": stops_json(self._words, self.stopped, lags, now),
        }

    def metrics(self) -> Iterator[Metric]:
        """Yield the Prometheus metrics of the transformers."""
        now = time.time()
        counted = (
            ("batches", "Batches completed.", self._counts["batches"]),
            ("spark_restarts", SPARK_RESTARTS, self._counts["spark_restarts"]),
        )
        yield from counters(_PREFIX, counted)
        yield from gauges(
            _PREFIX,
            (
                ("partitions", "Number of source partitions of all transformers.", len(self._shares)),
                ("waiting", "1 while the driver waits for Kafka.", float(bool(self._waiting))),
                ("lag_age_seconds", LAG_AGE, age_of(self._lags.measured_at, now)),
            ),
        )
        yield from self._transformer_metrics()
        yield from stop_metrics(self._words, now, self.stopped.all())
        yield from lag_metrics(_PREFIX, "Messages that are not transformed yet.", now, self._lags.latest)

    def _transformer_metrics(self) -> Iterator[Metric]:
        for name, text in _PER_TRANSFORMER:
            family = CounterMetricFamily(f"{_PREFIX}_{name}", text, labels=("transformer",))
            for transformer, counts in list(self._by_transformer.items()):
                count = self._seconds[transformer] if name == "seconds" else counts[name]
                family.add_metric((transformer,), count)
            yield family


def text(status: dict[str, Any]) -> str:
    """The answer of /status as text: each stopped partition with its fix, and a summary.

    KeyError for the answer of another version.
    """
    measured = status["lag_measured_seconds_ago"]
    age = "not measured yet" if measured is None else f"measured {as_time(measured)} ago"
    stopped = status["stopped"]
    lines = [
        *(stop_text(STREAM_FAULTS.words, stop) for stop in stopped),
        (
            f"{status['partitions'] - len(stopped):,} of {status['partitions']:,} partitions work; {len(stopped):,} "
            f"are stopped; lag {status['lag']:,} messages ({age})"
        ),
        *(
            f"{name}: {counts.get('messages', 0):,} messages transformed since the start, "
            f"{counts.get('native_messages', 0):,} of them by the native core"
            for name, counts in status["transformers"].items()
        ),
    ]
    if status["waiting"]:
        lines.append(f"waiting: {status['waiting']}")
    return "\n".join(lines)
