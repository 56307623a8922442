"""Counts the job's work for each table, as metrics."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily

from materializer.processing.fold_report import fold_part

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from prometheus_client.metrics_core import Metric

    from stream_runtime.records import Share
    from stream_runtime.worker.task import TaskResult

_PREFIX = "cdc_materializer_table"
_COUNTERS = (
    ("messages", "Raw messages folded."),
    ("chunks", "Chunks or parts of chunks folded. Each is a transaction."),
    ("versions", "State versions stored, one for each chunk that changed the state."),
    ("seconds", "Time spent reading the state, folding and committing."),
    ("commit_seconds", "Part of the seconds spent producing, storing changelogs, committing and applying them."),
)


_NULL_VALUES = (
    "Fields of `after` that are null because the message cannot represent their value, by reason: empty, or unreadable "
    "(no value of its type, or none that the column's form has)."
)


class TableCounts:
    """Filled by the driver, read by other threads."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}
        self._ops: dict[str, Counter[str]] = {}
        self._null_values: dict[str, Counter[str]] = {}

    def forget_all_but(self, shares: Collection[Share]) -> None:
        """Forget raw topics that were deleted."""
        for gone in self._counts.keys() - {share.stream for share in shares}:
            del self._counts[gone]
            self._ops.pop(gone, None)
            self._null_values.pop(gone, None)

    def count_batch(self, results: Sequence[TaskResult]) -> None:
        for result in results:
            if (report := result.report) is not None:
                topic = result.share.stream
                counts = self._counts.setdefault(topic, Counter())
                for name in ("messages", "chunks", "seconds", "commit_seconds"):
                    counts[name] += getattr(report, name)
                counts["versions"] += report.state.versions
                folded = fold_part(report)
                self._ops.setdefault(topic, Counter()).update(folded.ops)
                self._null_values.setdefault(topic, Counter()).update(folded.null_values)

    def metrics(self) -> Iterator[Metric]:
        for name, text in _COUNTERS:
            family = CounterMetricFamily(f"{_PREFIX}_{name}", text, labels=("topic",))
            for topic, counts in list(self._counts.items()):
                family.add_metric((topic,), counts[name])
            yield family
        yield _by_label("changes", "Changes published, by operation (c, u, d, r).", "op", self._ops)
        yield _by_label("null_values", _NULL_VALUES, "reason", self._null_values)


def _by_label(name: str, text: str, label: str, counts: Mapping[str, Counter[str]]) -> Metric:
    family = CounterMetricFamily(f"{_PREFIX}_{name}", text, labels=("topic", label))
    for topic, by_label in list(counts.items()):
        for value, count in list(by_label.items()):
            family.add_metric((topic, value), count)
    return family
