"""Spark's progress of the query in /status, as text and as metrics."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from cdc_common.program.metrics import Collected
from stream_runtime.query.progress import Progress, text

SAID: Any = SimpleNamespace(
    name="the-group",
    batchId=7,
    numInputRows=12_000,
    processedRowsPerSecond=2400.25,
    durationMs={"triggerExecution": 5000, "addBatch": 4800},
)
PROGRESS = Progress("the-group", 7, 12_000, 2400.25, 5.0, 4.8, 3)


def test_it_is_taken_from_sparks_own() -> None:
    assert Progress.of(SAID, 3) == PROGRESS


def test_as_text() -> None:
    assert text(PROGRESS.as_json()) == (
        "Spark query the-group: micro-batch 7 took 5.0 s, 12,000 messages, 2,400 a second; 3 workers"
    )


def test_as_metrics() -> None:
    registry = CollectorRegistry()
    registry.register(Collected(lambda: PROGRESS.metrics("cdc_materializer", "fold")))
    shown = generate_latest(registry).decode()
    for line in (
        "cdc_materializer_spark_batch 7.0",
        "cdc_materializer_spark_batch_rows 12000.0",
        "cdc_materializer_spark_rows_per_second 2400.25",
        "cdc_materializer_spark_batch_seconds 5.0",
        "cdc_materializer_spark_batch_task_seconds 4.8",
        "cdc_materializer_spark_workers 3.0",
    ):
        assert f"\n{line}\n" in shown
