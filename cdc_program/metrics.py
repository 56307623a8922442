"""What a program's status comes to as metrics of Prometheus, and as words for a person."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily

from cdc_program.node_sizes import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client.metrics_core import Metric


class Collected:
    """A collector of Prometheus: `collect` is called when it asks."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self.collect = collect


def counters(prefix: str, rows: Iterable[tuple[str, str, float]]) -> Iterator[Metric]:
    """Of (name, help, value) each."""
    for name, text, value in rows:
        yield CounterMetricFamily(f"{prefix}_{name}", text, value)


def gauges(prefix: str, rows: Iterable[tuple[str, str, float | None]]) -> Iterator[Metric]:
    """Of (name, help, value) each; None is not known now, and left out."""
    for name, text, value in rows:
        if value is not None:
            yield GaugeMetricFamily(f"{prefix}_{name}", text, value)


def summary(name: str, text: str, count: int, total: float) -> Metric:
    """Of so many observations that come to `total`."""
    return SummaryMetricFamily(name, text, count, total)


def as_size(count: float) -> str:
    """Of bytes."""
    return f"{count / MIB:,.1f} MiB"


def as_time(seconds: float | None, otherwise: str = "unknown") -> str:
    """Of seconds; `otherwise` for None."""
    if seconds is None:
        return otherwise
    return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=round(seconds)))
