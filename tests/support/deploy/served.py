"""What a publisher, a filler and a materializer serve to Prometheus."""

from __future__ import annotations

import re

import promql_parser
import pytest

from cdc_program.errors import CdcError, Code
from cdc_program.metrics import Collected
from cdc_program.operations import Operations
from filler.status import Status as FillerStatus
from filler.status import status_metrics as filler_metrics
from materializer.job.lag_watch import Lag, LagWatch
from materializer.job.status import JobStatus
from materializer.job.stopped import Failure, StoppedPartitions
from materializer.records import RawPartition
from publisher.status import Status, metrics


def served() -> set[str]:
    """The names of all their samples, and of `up`, which is Prometheus's own."""
    registry = Operations("127.0.0.1", 0, dict).registry
    busy = Status("host", "cluster", "5.0.8", is_compiled=True, lag_seconds=1, log_latency_seconds=1, seconds_to_full=1)
    registry.register(Collected(lambda: metrics(busy)))
    registry.register(Collected(lambda: filler_metrics(FillerStatus("host", "cluster", "5.0.8", 600.0, 1 << 25))))
    registry.register(Collected(_busy_job().metrics))
    return {sample.name for family in registry.collect() for sample in family.samples} | {"up"}


def _busy_job() -> JobStatus:
    """One raw partition, which is stopped, and whose unread messages are lost."""
    raw_partition, stopped = RawPartition("cdc.raw.shop.orders", 0), StoppedPartitions()
    stopped.stop(raw_partition, Failure(CdcError(Code.RAW_SKIPPED, "They are gone.", "None.")))
    lags = LagWatch(lambda: pytest.fail("it asks Kafka"), stopped.all)
    lags.latest, lags.measured_at = {raw_partition: Lag(1, 9, is_lost=True)}, 0.0
    return JobStatus("group", stopped, lags)


def metrics_of(expression: str) -> set[str]:
    """ValueError if it is no PromQL."""
    return set(re.findall(r"\b(?:cdc|process)_\w+|\bup\b", promql_parser.parse(expression).prettify()))
