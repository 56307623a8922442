"""The job's status: the answer of /status, as metrics and as text."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from archive.faults import ARCHIVE_FAULTS
from archive.job.share_report import ShareReport
from cdc_common.program.metrics import gauges
from stream_runtime.driver.status import LAG_AGE, age_of, stop_text
from stream_runtime.driver.stream_status import StreamStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client.metrics_core import Metric

    from archive.registrar.thread import RegistrarThread
    from archive.writer.report import CutReport
    from stream_runtime.driver.lag_watch import LagWatch
    from stream_runtime.driver.stopped import StoppedShares
    from stream_runtime.query.progress import Progress
    from stream_runtime.records import Share
    from stream_runtime.worker.task import TaskResult

_PER_TOPIC = (
    ("cuts", "Committed cuts."),
    ("rows", "Rows in files."),
    ("tombstones", "Messages without a value that were ignored."),
    ("erasures", "Messages without a value that are rows of the topic's table of erasures."),
    ("bytes_rows", "Rows that are kept as bytes: no schema describes them, or they are not of their schema."),
    ("refused_messages", "Messages that are not of their schema, and became dead letters or were left out."),
    ("lost_messages", "Offsets whose messages were deleted before they were read, where the settings accept that."),
    ("new_schema_versions", "Schema versions that were begun, because a schema does not fit the columns before."),
    ("kafka_time_rows", "Rows that have Kafka's time, because no field has the time of their event."),
    ("missing_rows", "Rows that compaction of the topic has removed between two tries of a cut."),
    ("files", "Files that were stored."),
    ("file_bytes", "Size of these files (bytes)."),
    ("errors", "Times that a share of the topic stopped."),
)


_FORGET_SECONDS = 600.0  # without a report of a worker


class _Worker(NamedTuple):
    """A worker process."""

    # Its resident memory in bytes.
    memory: int
    # The seconds that it has worked.
    worked: float
    # The time of its last report.
    seen: float


class ArchiveStatus(StreamStatus):
    """Filled by the driver, read by the threads of the operations port."""

    def __init__(self, group: str, stopped: StoppedShares, lags: LagWatch) -> None:
        super().__init__(group, ARCHIVE_FAULTS.words, stopped, lags)
        self.registrar: RegistrarThread | None = None
        self._by_topic: dict[str, Counter[str]] = defaultdict(Counter)
        self._open_files: dict[Share, int] = {}
        self._workers: dict[str, _Worker] = {}

    def count_batch(self, results: Sequence[TaskResult], progress: Progress | None = None) -> None:
        super().count_batch(results, progress)
        for result in results:
            counts = self._by_topic[result.share.stream]
            counts["errors"] += result.error is not None
            if result.report is not None and isinstance(result.report.own, ShareReport):
                counts.update(_counts(result.report.own.cuts))
                self._note_open(result.share, result.report.own, result.report.seconds)

    def set_shares(self, shares: Sequence[Share], pending: int = 0) -> None:
        super().set_shares(shares, pending)
        known = set(shares)
        self._open_files = {share: files for share, files in self._open_files.items() if share in known}

    def _note_open(self, share: Share, report: ShareReport, seconds: float) -> None:
        """Note what a share has open, and its worker. Workers that say nothing more are forgotten."""
        self._open_files[share] = report.open_files
        if not report.worker:
            return
        now = time.monotonic()
        before = self._workers.get(report.worker)
        worked = seconds + (0.0 if before is None else before.worked)
        workers = {name: worker for name, worker in self._workers.items() if now - worker.seen < _FORGET_SECONDS}
        self._workers = {**workers, report.worker: _Worker(report.memory, worked, now)}

    def as_json(self) -> dict[str, Any]:
        """As StreamStatus, with the counts of each topic."""
        topics = {topic: dict(counts) for topic, counts in sorted(self._by_topic.items())}
        return {**super().as_json(), "topics": topics, "tables": self._tables()}

    def _tables(self) -> dict[str, Any]:
        """Of each table of the catalog: the files that were registered since the start, and its error."""
        registrar = None if self.registrar is None else self.registrar.registrar
        if registrar is None:
            return {}
        counts, errors = dict(registrar.counts), dict(registrar.errors)
        return {
            name: {
                "files": counts.get(name, 0),
                "error": f"{errors[name].code.text} {errors[name].problem}" if name in errors else "",
            }
            for name in sorted(counts.keys() | errors.keys())
        }

    def metrics(self) -> Iterator[Metric]:
        """Yield the Prometheus metrics of the job."""
        yield from super().metrics()
        for name, text in _PER_TOPIC:
            family = CounterMetricFamily(f"{self._words.metrics}_{name}", text, labels=("topic",))
            for topic, counts in list(self._by_topic.items()):
                family.add_metric((topic,), counts[name])
            yield family
        registered = CounterMetricFamily(
            f"{self._words.metrics}_registered_files",
            "Files that were added to tables of the catalog.",
            labels=("table",),
        )
        waits = GaugeMetricFamily(
            f"{self._words.metrics}_table_stopped",
            "1 while a table of the catalog cannot be committed.",
            labels=("table",),
        )
        for name, table in self._tables().items():
            registered.add_metric((name,), table["files"])
            waits.add_metric((name,), float(bool(table["error"])))
        yield from (registered, waits, *self._worker_metrics())
        age = age_of(self._lags.measured_at, time.time())
        yield from gauges(self._words.metrics, (("lag_age_seconds", LAG_AGE, age),))

    def _worker_metrics(self) -> Iterator[Metric]:
        prefix = self._words.metrics
        buckets = GaugeMetricFamily(
            f"{prefix}_open_buckets",
            "Files that the open cuts of the topic have so far: the hours, or days, whose rows wait on workers' disks.",
            labels=("topic",),
        )
        files: Counter[str] = Counter()
        for share, count in self._open_files.items():
            files[share.stream] += count
        for topic, count in files.items():
            buckets.add_metric((topic,), count)
        memory = GaugeMetricFamily(
            f"{prefix}_worker_memory_bytes", "Resident memory of the worker (bytes).", labels=("worker",)
        )
        worked = CounterMetricFamily(
            f"{prefix}_worker_work_seconds",
            "Time that the worker has worked on messages and files.",
            labels=("worker",),
        )
        for name, worker in self._workers.items():
            memory.add_metric((name,), worker.memory)
            worked.add_metric((name,), worker.worked)
        yield from (buckets, memory, worked)


def _counts(cuts: CutReport) -> dict[str, int]:
    return {
        "cuts": cuts.cuts,
        "rows": cuts.rows,
        "tombstones": cuts.tombstones,
        "erasures": cuts.erasures,
        "bytes_rows": cuts.as_bytes,
        "refused_messages": cuts.refused,
        "new_schema_versions": cuts.new_versions,
        "lost_messages": cuts.lost,
        "kafka_time_rows": cuts.by_kafka_time,
        "missing_rows": cuts.missing,
        "files": cuts.files,
        "file_bytes": cuts.bytes,
    }


def text(status: dict[str, Any]) -> str:
    """The answer of /status as text: each stopped share with its fix, and a summary.

    KeyError for the answer of another version.
    """
    stopped = status["stopped"]
    lines = [
        *(stop_text(ARCHIVE_FAULTS.words, stop) for stop in stopped),
        (
            f"{status['partitions'] - len(stopped):,} of {status['partitions']:,} shares work; {len(stopped):,} are "
            f"stopped; lag {status['lag']:,} messages"
        ),
        *(
            f"{topic}: {counts.get('rows', 0):,} rows in {counts.get('files', 0):,} files since the start"
            for topic, counts in status["topics"].items()
        ),
    ]
    lines += [f"table {name}: {table['error']}" for name, table in status["tables"].items() if table["error"]]
    if status["waiting"]:
        lines.append(f"waiting: {status['waiting']}")
    return "\n".join(lines)
