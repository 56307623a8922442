"""Logs the reports of a batch's tasks: stalled publishers, dead-lettered messages."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import structlog

from cdc_common.errors.codes import Code
from materializer.processing.fold_report import fold_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stream_runtime.exactly_once.report import Report
    from stream_runtime.worker.task import TaskResult

_logger = structlog.get_logger(__name__)
_REPEAT_SECONDS = 600.0


class BatchLog:
    """Logs one batch after another."""

    def __init__(self) -> None:
        self._alerts = stalled_publishers(), lost_rows()

    def log_batch(self, results: Sequence[TaskResult]) -> None:
        for alert in self._alerts:
            alert.log_found(results)
        _log_dead_letters(results)


class HostAlert:
    """Warns of a host and a topic, and repeats it every 10 minutes while a task reports it."""

    def __init__(self, hosts: Callable[[Report], Iterable[str]], event: str, **fields: str) -> None:
        self._hosts = hosts
        self._event = event
        self._fields = fields
        self._logged_at: dict[tuple[str, str], float] = {}

    def log_found(self, results: Sequence[TaskResult]) -> None:
        found = {
            (result.share.stream, host)
            for result in results
            if result.report is not None
            for host in self._hosts(result.report)
        }
        now = time.monotonic()
        for topic, host in sorted(found):
            if now - self._logged_at.get((topic, host), -math.inf) >= _REPEAT_SECONDS:
                self._logged_at[topic, host] = now
                _logger.warning(self._event, host=host, topic=topic, **self._fields)


def stalled_publishers() -> HostAlert:
    """Names each stalled publisher."""
    return HostAlert(
        lambda report: fold_part(report).stalled_publishers,
        "publisher stalled",
        code=Code.PUBLISHER_STALLED.text,
        problem="It has sent no messages for a long time. No tombstone is purged until it sends again.",
        fix="Start it. If its node is gone for good, add the host id to materializer.forgotten_publishers.",
    )


def lost_rows() -> HostAlert:
    """Names each host that did not take part in a TRUNCATE, until it has sent a snapshot."""
    return HostAlert(
        lambda report: fold_part(report).lost_hosts,
        "table needs a snapshot",
        code=Code.NOT_TRUNCATED.text,
        problem="Other nodes truncated the table and this one did not. Its rows from before are not published.",
        fix="Run TRUNCATE again, or take a snapshot of the table (cassandra-publisher snapshot). With "
        "publisher.snapshot = when_needed it comes by itself.",
    )


def _log_dead_letters(results: Sequence[TaskResult]) -> None:
    for share, report, *_ in results:
        if report is not None and (count := fold_part(report).dead_letters):
            _logger.warning(
                "raw messages dead-lettered",
                code=Code.DEAD_LETTERED.text,
                raw_partition=str(share),
                count=count,
                problem="They cannot be read. Changes of their Cassandra partitions have source.incomplete set.",
                fix="See `cassandra-materializer dead-letters ls`. A newer materializer may be able to replay them.",
            )
