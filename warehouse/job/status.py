"""The job's status: the answer of /status, as metrics and as text; and the lag, by the offsets of committed loads."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from cdc_common.program.metrics import gauges
from stream_runtime.driver.lag_watch import LagWatch, UnreadTopics
from stream_runtime.driver.status import LAG_AGE, age_of, stop_text
from stream_runtime.driver.stream_status import StreamStatus
from stream_runtime.exactly_once.commits import StoredOffset
from warehouse.faults import WAREHOUSE_FAULTS
from warehouse.loading.report import LoadReport

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client.metrics_core import Metric

    from stream_runtime.driver.stopped import StoppedShares
    from stream_runtime.query.progress import Progress
    from stream_runtime.records import SourcePartition
    from stream_runtime.worker.task import TaskResult
    from warehouse.job.plan import Job

_PER_TOPIC = (
    ("loads", "Loads that were committed."),
    ("rows", "Row versions that were staged: of each key the newest of a load."),
    ("nulled", "Values that became null because the warehouse cannot hold them."),
    ("migrations", "Loads that changed the columns of the table."),
    ("load_seconds", "Time of loads, from the newest version of each key to the commit (s)."),
    ("errors", "Times that the table stopped."),
)

Offsets = dict[str, dict[int, int]]
"""The next offset of each partition, by topic."""


class UnreadOfWarehouse(UnreadTopics):
    """The positions are those of committed loads, which workers report. A table that no worker has opened yet has no
    position.
    """

    def __init__(self, job: Job, offsets: Offsets) -> None:
        super().__init__(job.kafka, job.settings.group_id, WAREHOUSE_FAULTS)
        self._offsets = offsets

    def positions(self, partitions: Sequence[SourcePartition]) -> dict[SourcePartition, StoredOffset | None]:
        found = {at: self._offsets.get(at.topic, {}).get(at.partition) for at in partitions}
        return {at: None if offset is None else StoredOffset(offset) for at, offset in found.items()}


def unread_of(job: Job, offsets: Offsets) -> UnreadTopics:
    """How the lag is measured: the writer's positions are in its consumer group."""
    if job.role == "write":
        return UnreadTopics(job.kafka, job.settings.group_id, WAREHOUSE_FAULTS)
    return UnreadOfWarehouse(job, offsets)


class WarehouseStatus(StreamStatus):
    """Filled by the driver, read by the threads of the operations port."""

    def __init__(self, group: str, stopped: StoppedShares, lags: LagWatch, offsets: Offsets) -> None:
        super().__init__(group, WAREHOUSE_FAULTS.words, stopped, lags)
        self._offsets = offsets
        self._by_topic: dict[str, Counter[str]] = defaultdict(Counter)
        self._loaded_at: dict[str, float] = {}

    def count_batch(self, results: Sequence[TaskResult], progress: Progress | None = None) -> None:
        super().count_batch(results, progress)
        for result in results:
            topic = result.share.stream
            counts = self._by_topic[topic]
            counts["errors"] += result.error is not None
            own = None if result.report is None else result.report.own
            if isinstance(own, LoadReport):
                counts.update(_counts(own))
                self._offsets[topic] = {**self._offsets.get(topic, {}), **own.offsets}
                if own.loads:
                    self._loaded_at[topic] = time.time()

    def as_json(self) -> dict[str, Any]:
        """As StreamStatus, with the counts of each topic."""
        return {
            **super().as_json(),
            "topics": {topic: {name: counts[name] for name, _ in _PER_TOPIC} for topic, counts in self._each_topic()},
        }

    def metrics(self) -> Iterator[Metric]:
        """Yield the Prometheus metrics of the job."""
        yield from super().metrics()
        for name, text in _PER_TOPIC:
            family = CounterMetricFamily(f"{self._words.metrics}_{name}", text, labels=("topic",))
            for topic, counts in self._each_topic():
                family.add_metric((topic,), counts[name])
            yield family
        loaded = GaugeMetricFamily(
            f"{self._words.metrics}_load_age_seconds",
            "Time since the last load of the table (s).",
            labels=("topic",),
        )
        for topic, at in sorted(self._loaded_at.copy().items()):
            loaded.add_metric((topic,), time.time() - at)
        yield loaded
        age = age_of(self._lags.measured_at, time.time())
        yield from gauges(self._words.metrics, (("lag_age_seconds", LAG_AGE, age),))

    def _each_topic(self) -> list[tuple[str, Counter[str]]]:
        return sorted(self._by_topic.copy().items())


def _counts(load: LoadReport) -> dict[str, float]:
    return {
        "loads": load.loads,
        "rows": load.rows,
        "nulled": load.nulled,
        "migrations": load.migrations,
        "load_seconds": load.seconds,
    }


def text(status: dict[str, Any]) -> str:
    """The answer of /status as text: each stopped table with its fix, and a summary.

    KeyError for the answer of another version.
    """
    stopped = status["stopped"]
    lines = [
        *(stop_text(WAREHOUSE_FAULTS.words, stop) for stop in stopped),
        (
            f"{status['partitions'] - len(stopped):,} of {status['partitions']:,} tables work; {len(stopped):,} are "
            f"stopped; lag {status['lag']:,} messages"
        ),
        *(
            f"{topic}: {counts['rows']:,} row versions in {counts['loads']:,} loads since the start"
            for topic, counts in status["topics"].items()
        ),
    ]
    if status["waiting"]:
        lines.append(f"waiting: {status['waiting']}")
    return "\n".join(lines)
