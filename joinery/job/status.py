"""The job's status: the answer of /status, as metrics and as text."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from joinery.faults import JOIN_FAULTS
from joinery.job.join_report import JoinReport
from joinery.records import join_of, routes
from stream_runtime.driver.status import stop_text
from stream_runtime.driver.stream_status import StreamStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from prometheus_client.metrics_core import Metric

    from joinery.definition import Join
    from stream_runtime.driver.lag_watch import LagWatch
    from stream_runtime.driver.stopped import StoppedShares
    from stream_runtime.query.progress import Progress
    from stream_runtime.records import Share
    from stream_runtime.worker.task import TaskResult


class JoineryStatus(StreamStatus):
    """Filled by the driver, read by the threads of the operations port."""

    def __init__(self, group: str, joins: Sequence[Join], stopped: StoppedShares, lags: LagWatch) -> None:
        super().__init__(group, JOIN_FAULTS.words, stopped, lags)
        self._inputs = {join.name: list(join.input) for join in joins}
        self._routed: Counter[tuple[str, str]] = Counter()  # by join and topic
        self._joined: Counter[str] = Counter()
        self._changes: Counter[str] = Counter()
        self._reports: dict[Share, JoinReport] = {}
        self._bytes: dict[Share, int] = {}

    def count_batch(self, results: Sequence[TaskResult], progress: Progress | None = None) -> None:
        super().count_batch(results, progress)
        for result in results:
            if result.report is None:
                continue
            name = join_of(result.share)
            if routes(result.share):
                self._routed[name, result.share.partition.topic] += result.report.messages
                continue
            self._joined[name] += result.report.messages
            self._changes[name] += result.report.changes
            self._bytes[result.share] = result.report.state.bytes or self._bytes.get(result.share, 0)
            own = result.report.own
            if isinstance(own, JoinReport):
                before = self._reports.get(result.share)
                self._reports[result.share] = own if before is None else before.and_then(own)

    def as_json(self) -> dict[str, Any]:
        """As StreamStatus, with the sizes of each join."""
        return {**super().as_json(), "joins": {name: self._join_json(name) for name in self._inputs}}

    def metrics(self) -> Iterator[Metric]:
        """Yield the Prometheus metrics of the job."""
        yield from super().metrics()
        prefix = self._words.metrics
        read = CounterMetricFamily(
            f"{prefix}_routed_messages", "Messages of inputs that were routed.", labels=("join", "topic")
        )
        for (name, topic), count in sorted(self._routed.copy().items()):
            read.add_metric((name, topic), count)
        yield read
        for kind, text, counts in (
            ("joined_messages", "Messages of the internal topic that were joined.", self._joined),
            ("changes", "Changes of joined rows that were sent.", self._changes),
        ):
            family = CounterMetricFamily(f"{prefix}_{kind}", text, labels=("join",))
            for name in self._inputs:
                family.add_metric((name,), counts[name])
            yield family
        yield from self._sizes(prefix)

    def _sizes(self, prefix: str) -> Iterator[Metric]:
        """Of the partitions that were joined since the start."""
        yield self._by_input(
            f"{prefix}_rows", "Rows of the input in the states that were joined since the start.", _rows_of
        )
        yield self._by_input(
            f"{prefix}_largest_group_rows",
            "Most rows of the input that a message has made under one join key since the start.",
            _largest_of,
        )
        for kind, text, value in (
            ("largest_fan_out_rows", "Most joined rows that a message could change since the start.", self._fan_out),
            ("state_bytes", "Size of the local states.", self._state_bytes),
            ("loading_partitions", "Partitions that load their inputs, and have sent no joined row.", self._loading),
        ):
            family = GaugeMetricFamily(f"{prefix}_{kind}", text, labels=("join",))
            for name in self._inputs:
                family.add_metric((name,), value(name))
            yield family

    def _by_input(self, name: str, text: str, value: Callable[[Iterable[JoinReport], int], int]) -> GaugeMetricFamily:
        family = GaugeMetricFamily(name, text, labels=("join", "input"))
        for join, inputs in self._inputs.items():
            for number, given in enumerate(inputs):
                family.add_metric((join, given), value(self._of(join), number))
        return family

    def _join_json(self, name: str) -> dict[str, Any]:
        reports = self._of(name)
        return {
            "rows": {given: _rows_of(reports, number) for number, given in enumerate(self._inputs[name])},
            "largest_group": {given: _largest_of(reports, number) for number, given in enumerate(self._inputs[name])},
            "largest_fan_out": self._fan_out(name),
            "state_bytes": self._state_bytes(name),
            "loading_partitions": self._loading(name),
        }

    def _of(self, join: str) -> list[JoinReport]:
        return [report for share, report in self._reports.copy().items() if join_of(share) == join]

    def _fan_out(self, join: str) -> int:
        return max((report.sizes.fan_out for report in self._of(join)), default=0)

    def _loading(self, join: str) -> int:
        return sum(report.is_loading for report in self._of(join))

    def _state_bytes(self, join: str) -> int:
        return sum(size for share, size in self._bytes.copy().items() if join_of(share) == join)


def _rows_of(reports: Iterable[JoinReport], number: int) -> int:
    return sum(report.rows[number] for report in reports)


def _largest_of(reports: Iterable[JoinReport], number: int) -> int:
    return max((report.sizes.largest[number] for report in reports), default=0)


def text(status: dict[str, Any]) -> str:
    """Each stopped partition with its fix, the rows of each join, and a summary. KeyError for the answer of another
    version.
    """
    stopped = status["stopped"]
    lines = [
        *(stop_text(JOIN_FAULTS.words, stop) for stop in stopped),
        *(_join_text(name, join) for name, join in status["joins"].items()),
        (
            f"{status['partitions'] - len(stopped):,} of {status['partitions']:,} partitions work; {len(stopped):,} "
            f"are stopped; {status['messages']:,} messages since the start; lag {status['lag']:,} messages"
        ),
    ]
    if status["waiting"]:
        lines.append(f"waiting: {status['waiting']}")
    return "\n".join(lines)


def _join_text(name: str, join: dict[str, Any]) -> str:
    rows = ", ".join(f"{count:,} rows of {given}" for given, count in join["rows"].items())
    loading = f"; {join['loading_partitions']:,} partitions load" if join["loading_partitions"] else ""
    return f"{name}: {rows}, largest fan-out {join['largest_fan_out']:,}, {join['state_bytes']:,} bytes{loading}"
