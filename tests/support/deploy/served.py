"""What a publisher and a filler serve to Prometheus."""

from __future__ import annotations

import re

import promql_parser

from cdc_program.metrics import Collected
from cdc_program.operations import Operations
from filler.status import Status as FillerStatus
from filler.status import status_metrics as filler_metrics
from publisher.status import Status, metrics


def served() -> set[str]:
    """The names of all samples of both, and of `up`, which is Prometheus's own."""
    registry = Operations("127.0.0.1", 0, dict).registry
    busy = Status("host", "cluster", "5.0.8", is_compiled=True, lag_seconds=1, log_latency_seconds=1, seconds_to_full=1)
    registry.register(Collected(lambda: metrics(busy)))
    registry.register(Collected(lambda: filler_metrics(FillerStatus("host", "cluster", "5.0.8", 600.0, 1 << 25))))
    return {sample.name for family in registry.collect() for sample in family.samples} | {"up"}


def metrics_of(expression: str) -> set[str]:
    """ValueError if it is no PromQL."""
    return set(re.findall(r"\b(?:cdc|process)_\w+|\bup\b", promql_parser.parse(expression).prettify()))
