"""The job's status: the answer of /status, as metrics and as text."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from cdc_common.program.metrics import as_time, counters, gauges
from materializer.errors import RAW_FAULTS
from materializer.job.state_sizes import StateSizes
from materializer.job.state_sizes import text as sizes_text
from materializer.job.table_counts import TableCounts
from materializer.processing.fold_report import fold_part
from stream_runtime.driver.status import (
    LAG_AGE,
    RETRIES,
    SPARK_RESTARTS,
    age_of,
    lag_metrics,
    least_hours_left,
    stop_metrics,
    stop_text,
    stops_json,
)
from stream_runtime.driver.stream_status import StreamStatus
from stream_runtime.query.progress import text as progress_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from prometheus_client.metrics_core import Metric

    from stream_runtime.driver.lag_watch import LagWatch
    from stream_runtime.driver.stopped import StoppedShares
    from stream_runtime.query.progress import Progress
    from stream_runtime.records import Share
    from stream_runtime.worker.task import TaskResult

_PREFIX = "cdc_materializer"
_FOLDING_SECONDS = 600.0  # without a folded message, while there are unread ones: as long as a batch may take
_STALLED_SECONDS = 300.0  # a publisher is stalled until so long after it was last reported


class JobStatus(StreamStatus):
    """Filled by the driver, read by the threads of the operations port."""

    def __init__(self, group: str, stopped: StoppedShares, lags: LagWatch) -> None:
        super().__init__(group, RAW_FAULTS.words, stopped, lags)
        self._stalled: dict[tuple[str, str], float] = {}
        self._snapshots: dict[Share, Sequence[str]] = {}
        self._lost_hosts: dict[Share, Collection[str]] = {}
        self._sizes = StateSizes()
        self._tables = TableCounts()
        self._pending = 0
        self._folded_at = time.monotonic()

    @property
    def phase(self) -> str:
        """The present phase of the job."""
        if self._waiting:
            return "waiting"
        if not self._counts["batches"]:
            return "starting"
        return f"planning: {self._pending} raw topics are not planned yet" if self._pending else "folding"

    def problem(self) -> str:
        """Why nothing is folded although there are unread messages; empty otherwise, and while a server is away."""
        if self._waiting:
            return ""
        if not self._counts["batches"]:
            return "The job is starting: it has not ended its first batch."
        stopped = self.stopped.all()
        unread = sum(lag.messages for share, lag in self._lags.latest.items() if share not in stopped)
        seconds = time.monotonic() - self._folded_at
        if not unread or (self._counts["messages"] and seconds < _FOLDING_SECONDS):
            return ""
        since = f"for {seconds:.0f} s" if self._counts["messages"] else "since the start"
        return f"Nothing was folded {since}, although {unread:,} messages are unread."

    def set_shares(self, shares: Sequence[Share], pending: int = 0) -> None:
        """Set the present raw partitions. pending: how many raw topics are not planned yet."""
        super().set_shares(shares, pending)
        self._pending = pending
        self._sizes.forget_all_but(shares)
        self._tables.forget_all_but(shares)
        for gone in self._snapshots.keys() - set(shares):
            del self._snapshots[gone], self._lost_hosts[gone]

    def count_batch(self, results: Sequence[TaskResult], progress: Progress | None = None) -> None:
        super().count_batch(results, progress)
        self._sizes.count_batch(results)
        self._tables.count_batch(results)
        for result in results:
            if result.report is not None:
                if result.report.messages:
                    self._folded_at = time.monotonic()
                self._counts["native"] += result.report.native
                self._counts["changes"] += result.report.changes
                own = fold_part(result.report)
                self._counts["dead_letters"] += own.dead_letters
                for host in own.stalled_publishers:
                    self._stalled[result.share.stream, host] = time.monotonic()
                if result.report.chunks:
                    self._snapshots[result.share] = own.running_snapshots
                    self._lost_hosts[result.share] = own.lost_hosts

    def as_json(self) -> dict[str, Any]:
        """Times are in seconds and offsets in messages. `stopped` has one object for each stopped raw partition;
        `snapshots` the number of raw partitions in which each snapshot is running; `untruncated`: see _untruncated.
        """
        now, lags = time.time(), self._lags.latest
        age = age_of(self._lags.measured_at, now)
        return {
            "group": self._group,
            "raw_partitions": len(self._shares),
            "phase": self.phase,
            "waiting": self._waiting,
            **{name: self._counts[name] for name in ("batches", "messages", "changes", "dead_letters")},
            "stalled_publishers": self._stalled_count(),
            "snapshots": self._snapshot_counts(),
            "untruncated": self._untruncated(),
            "lag": sum(lag.messages for lag in lags.values()),
            "lag_measured_seconds_ago": None if age is None else round(age, 1),
            "least_hours_left": least_hours_left(lags, now),
            "spark": None if self._progress is None else self._progress.as_json(),
            "local_states": self._sizes.as_json(),
            "stopped": stops_json(self._words, self.stopped, lags, now),
        }

    def metrics(self) -> Iterator[Metric]:
        """Yield the Prometheus metrics of the job."""
        now, stops, lags = time.time(), self.stopped.all(), self._lags.latest
        yield from counters(
            _PREFIX,
            (
                ("batches", "Batches completed.", self._counts["batches"]),
                ("messages", "Raw messages folded.", self._counts["messages"]),
                ("native_messages", "Raw messages folded by the native core.", self._counts["native"]),
                ("changes", "Changes published to change topics.", self._counts["changes"]),
                (
                    "dead_letters",
                    "Raw messages that could not be read and were dead-lettered.",
                    self._counts["dead_letters"],
                ),
                ("retries", RETRIES, self._counts["retries"]),
                ("spark_restarts", SPARK_RESTARTS, self._counts["spark_restarts"]),
            ),
        )
        yield from gauges(
            _PREFIX,
            (
                ("raw_partitions", "Number of raw partitions of the job.", len(self._shares)),
                ("waiting", "1 while the driver waits for Kafka.", float(bool(self._waiting))),
                (
                    "stalled_publishers",
                    "Number of publishers without a watermark for materializer.stalled_publisher_seconds.",
                    self._stalled_count(),
                ),
                (
                    "snapshot_raw_partitions",
                    "Number of raw partitions with a running snapshot. No tombstone is purged in them.",
                    sum(map(bool, self._snapshots.values())),
                ),
                (
                    "untruncated_raw_partitions",
                    "Number of raw partitions that lack rows of a node that did not take part in a TRUNCATE.",
                    sum(map(bool, self._lost_hosts.values())),
                ),
                ("lag_age_seconds", LAG_AGE, age_of(self._lags.measured_at, now)),
            ),
        )
        if (progress := self._progress) is not None:
            yield from progress.metrics(_PREFIX, "fold")
        yield from stop_metrics(self._words, now, stops)
        yield from lag_metrics(_PREFIX, "Raw messages that are not folded yet.", now, lags)
        yield from self._sizes.metrics()
        yield from self._tables.metrics()

    def _snapshot_counts(self) -> dict[str, int]:
        return dict(Counter(snapshot for running in self._snapshots.values() for snapshot in running))

    def _untruncated(self) -> dict[str, list[str]]:
        """Return, for each raw topic, the hosts that did not take part in a TRUNCATE, sorted."""
        found: dict[str, set[str]] = {}
        for share, hosts in self._lost_hosts.items():
            if hosts:
                found.setdefault(share.stream, set()).update(hosts)
        return {topic: sorted(hosts) for topic, hosts in sorted(found.items())}

    def _stalled_count(self) -> int:
        latest = time.monotonic() - _STALLED_SECONDS
        return sum(seen >= latest for seen in list(self._stalled.values()))


def text(status: dict[str, Any]) -> str:
    """The answer of /status as text: each stopped raw partition with its fix, and a summary.

    KeyError for the answer of another version.
    """
    stopped = [stop_text(RAW_FAULTS.words, stop) for stop in status["stopped"]]
    working = status["raw_partitions"] - len(stopped)
    measured = status["lag_measured_seconds_ago"]
    age = "not measured yet" if measured is None else f"measured {as_time(measured)} ago"
    lines = [
        *stopped,
        f"{working:,} of {status['raw_partitions']:,} raw partitions work; {len(stopped):,} are stopped",
        *([] if status["phase"] in {"folding", "waiting"} else [status["phase"]]),
        (
            f"lag {status['lag']:,} messages ({age}); {status['messages']:,} folded, {status['changes']:,} changes and "
            f"{status['dead_letters']:,} dead letters since the start"
        ),
    ]
    if status["spark"] is not None:
        lines.append(progress_text(status["spark"]))
    if status["local_states"]:
        lines.append(sizes_text(status["local_states"]))
    if status["least_hours_left"] is not None:
        lines.append(f"unread messages are kept for at least {status['least_hours_left']:g} h")
    if status["stalled_publishers"]:
        lines.append(f"{status['stalled_publishers']:,} publishers are stalled: no tombstone is purged")
    lines += [
        f"snapshot {snapshot} is running in {count:,} raw partitions: no tombstone is purged there"
        for snapshot, count in status["snapshots"].items()
    ]
    lines += [
        f"{topic} needs a snapshot: {', '.join(hosts)} did not take part in a TRUNCATE"
        for topic, hosts in status["untruncated"].items()
    ]
    if status["waiting"]:
        lines.append(f"waiting: {status['waiting']}")
    return "\n".join(lines)
