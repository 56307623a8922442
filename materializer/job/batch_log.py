"""Logs what the tasks of a batch report: its size, stalled publishers, dead-lettered messages."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import structlog

from cdc_program.errors import Code

if TYPE_CHECKING:
    from materializer.job.worker_loop import TaskResult

_logger = structlog.get_logger(__name__)
_REPEAT_SECONDS = 600.0


class BatchLog:
    """Logs one batch after another."""

    def __init__(self) -> None:
        self._stalled_publishers = StalledPublisherAlert()
        self._lost_rows = LostRowsAlert()

    def log_batch(self, results: list[TaskResult], seconds: float) -> None:
        _log_sizes(results, seconds)
        self._stalled_publishers.log_stalled(results)
        self._lost_rows.log_lost(results)
        _log_dead_letters(results)


class _Repeated:
    """What is logged again only every 10 minutes."""

    def __init__(self) -> None:
        self._logged_at: dict[tuple[str, str], float] = {}

    def _due(self, found: set[tuple[str, str]]) -> list[tuple[str, str]]:
        """Of these topics and hosts, those to log now."""
        now = time.monotonic()
        due = [each for each in sorted(found) if now - self._logged_at.get(each, -math.inf) >= _REPEAT_SECONDS]
        self._logged_at.update(dict.fromkeys(due, now))
        return due


class StalledPublisherAlert(_Repeated):
    """Names each stalled publisher, and repeats it while it is stalled."""

    def log_stalled(self, results: list[TaskResult]) -> None:
        stalled = {
            (result.raw_partition.topic, host)
            for result in results
            if result.report is not None
            for host in result.report.stalled_publishers
        }
        for topic, host in self._due(stalled):
            _logger.warning(
                "publisher stalled",
                code=Code.PUBLISHER_STALLED.text,
                host=host,
                topic=topic,
                problem="It has sent no messages for a long time. No tombstone is purged until it sends again.",
                fix="Start it. If its node is gone for good, add the host id to materializer.forgotten_publishers.",
            )


class LostRowsAlert(_Repeated):
    """Names each host that did not take part in a TRUNCATE, and repeats it until it has sent a snapshot."""

    def log_lost(self, results: list[TaskResult]) -> None:
        lost = {
            (result.raw_partition.topic, host)
            for result in results
            if result.report is not None
            for host in result.report.lost_hosts
        }
        for topic, host in self._due(lost):
            _logger.warning(
                "table needs a snapshot",
                code=Code.NOT_TRUNCATED.text,
                host=host,
                topic=topic,
                problem="Other nodes truncated the table and this one did not. Its rows from before are not published.",
                fix="Run TRUNCATE again, or take a snapshot of the table (cassandra-publisher snapshot).",
            )


def _log_sizes(results: list[TaskResult], seconds: float) -> None:
    reports = [result.report for result in results if result.report is not None]
    _logger.debug(
        "batch",
        partitions=len(results),
        messages=sum(report.messages for report in reports),
        changes=sum(report.changes for report in reports),
        read_bytes=sum(report.read for report in reports),
        written_bytes=sum(report.written for report in reports),
        slowest_ms=round(1000 * max((report.seconds for report in reports), default=0.0)),
        ms=round(1000 * seconds),
    )


def _log_dead_letters(results: list[TaskResult]) -> None:
    for raw_partition, report, *_ in results:
        if report is not None and report.dead_letters:
            _logger.warning(
                "raw messages dead-lettered",
                code=Code.DEAD_LETTERED.text,
                raw_partition=str(raw_partition),
                count=report.dead_letters,
                problem="They cannot be read. Changes of their Cassandra partitions have source.incomplete set.",
                fix="See `cassandra-materializer dead-letters ls`. A newer materializer may be able to replay them.",
            )
