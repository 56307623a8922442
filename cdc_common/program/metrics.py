"""A program's status as metrics of Prometheus and as text."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily

from cdc_common.node.sizes import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client.metrics_core import Metric


class Collected:
    """A collector of Prometheus that calls `collect` at each scrape."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self.collect = collect


def counters(prefix: str, rows: Iterable[tuple[str, str, float]]) -> Iterator[Metric]:
    """One for each (name, help, value)."""
    for name, text, value in rows:
        yield CounterMetricFamily(f"{prefix}_{name}", text, value)


def gauges(prefix: str, rows: Iterable[tuple[str, str, float | None]]) -> Iterator[Metric]:
    """One for each (name, help, value), except where the value is None: unknown now."""
    for name, text, value in rows:
        if value is not None:
            yield GaugeMetricFamily(f"{prefix}_{name}", text, value)


def summary(name: str, text: str, count: int, total: float) -> Metric:
    """Return a metric of `count` observations with the sum `total`."""
    return SummaryMetricFamily(name, text, count, total)


def as_lines(rows: Iterable[tuple[str, str]]) -> list[str]:
    """A line for each (name, text), with the texts below each other."""
    named = list(rows)
    width = max(len(name) for name, _ in named)
    return [f"{name:<{width}}  {text}" for name, text in named]


def as_size(count: float) -> str:
    """A number of bytes as text."""
    return f"{count / MIB:,.1f} MiB"


def as_time(seconds: float | None, unknown: str = "unknown") -> str:
    """A number of seconds as text; `unknown` for None."""
    if seconds is None:
        return unknown
    return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=round(seconds)))
