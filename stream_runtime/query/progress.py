"""Spark's reports about the job's streaming query, as metrics and as text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from cdc_common.program.metrics import as_time, gauges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric
    from pyspark.sql.streaming.listener import StreamingQueryProgress


@dataclass(frozen=True, slots=True)
class Progress:
    """Spark's StreamingQueryProgress of one micro-batch."""

    # The query's name.
    query: str
    # The micro-batch's number.
    batch: int
    # The number of messages in it.
    rows: int
    # Spark's processedRowsPerSecond.
    rows_per_second: float
    # How long the micro-batch took.
    seconds: float
    # How long of that its tasks and their results took.
    round_seconds: float
    # The number of processes that fold.
    workers: int

    @classmethod
    def of(cls, progress: StreamingQueryProgress, workers: int) -> Self:
        return cls(
            query=progress.name or "",
            batch=progress.batchId,
            rows=progress.numInputRows,
            rows_per_second=progress.processedRowsPerSecond,
            seconds=progress.durationMs.get("triggerExecution", 0) / 1000,
            round_seconds=progress.durationMs.get("addBatch", 0) / 1000,
            workers=workers,
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def metrics(self, prefix: str, work: str) -> Iterator[Metric]:
        """Yield the Prometheus metrics of the streaming query's progress. work: what a worker does."""
        yield from gauges(
            f"{prefix}_spark",
            (
                ("batch", "Id of Spark's last micro-batch.", self.batch),
                ("batch_rows", "Messages in the last micro-batch.", self.rows),
                ("rows_per_second", "Spark's processedRowsPerSecond of the last micro-batch.", self.rows_per_second),
                ("batch_seconds", "Duration of the last micro-batch.", self.seconds),
                (
                    "batch_task_seconds",
                    "Time that the tasks of the last micro-batch and their results took.",
                    self.round_seconds,
                ),
                ("workers", f"Number of Python processes that {work}.", self.workers),
            ),
        )


def text(progress: dict[str, Any]) -> str:
    """Progress.as_json as a line."""
    return (
        f"Spark query {progress['query']}: micro-batch {progress['batch']:,} took {as_time(progress['seconds'])}, "
        f"{progress['rows']:,} messages, {progress['rows_per_second']:,.0f} a second; "
        f"{progress['workers']:,} workers"
    )
