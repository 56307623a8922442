"""The metrics that the programs serve to Prometheus."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import promql_parser

from dev.tools.reference.busy_programs import registries
from tests.support.deploy.promql import Sample

if TYPE_CHECKING:
    from collections.abc import Iterable


def served() -> set[str]:
    """The names of all samples of all programs, and of `up`, which is Prometheus's own."""
    return {sample.name for sample in scraped()}


def scraped() -> list[Sample]:
    """Return the samples as Prometheus has them, with `job` and `instance`. Each has grown by one per second."""
    found = []
    for job, registry in registries().items():
        own = {("job", job), ("instance", "here:1")}
        found.append(Sample("up", frozenset(own), 1.0))
        found += [
            Sample(sample.name, frozenset({*sample.labels.items(), *own}), sample.value, 1.0)
            for family in registry.collect()
            for sample in family.samples
        ]
    return found


def metrics_of(expression: str) -> set[str]:
    """ValueError if it is no PromQL."""
    return set(re.findall(r"\b(?:cdc|process)_\w+|\bup\b", promql_parser.parse(expression).prettify()))


def metric_names(expressions: Iterable[str]) -> set[str]:
    """The names of all metrics in the expressions."""
    return {name for expression in expressions for name in metrics_of(expression)}
