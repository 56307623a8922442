"""Drift as metrics in Prometheus's text format, for the textfile collector of node_exporter or a push gateway."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

from schematizer.topic_files.planning.things import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from schematizer.topic_files.planning.differences import Plan

_CATALOGUE = "catalogue"
"""The owner of quotas, and of rights on groups: they belong to no single topic."""


def write_drift_metrics(plan: Plan, path: Path) -> None:
    """Write the number of things that were changed by hand, by kind and owner, and when they were counted. The file is
    replaced at once.
    """
    registry = CollectorRegistry()
    drift = Gauge(
        "cdc_topics_changed_by_hand",
        "Number of things of topic files that someone changed by hand since the last apply.",
        ("environment", "kind", "owner"),
        registry=registry,
    )
    for kind in Kind:
        drift.labels(plan.environment, kind.value, _CATALOGUE).set(0)
    for (kind_name, owner), count in _counts(plan).items():
        drift.labels(plan.environment, kind_name, owner).set(count)
    checked = Gauge(
        "cdc_topics_drift_checked_timestamp_seconds",
        "Time at which drift was looked for (s since 1970).",
        ("environment",),
        registry=registry,
    )
    checked.labels(plan.environment).set(time.time())
    write_to_textfile(str(path), registry)


def _counts(plan: Plan) -> Counter[tuple[str, str]]:
    steps: Sequence[tuple[str, str]] = [
        (step.thing.kind.value, step.about.get("owner", _CATALOGUE)) for step in plan.drift()
    ]
    return Counter(steps)
