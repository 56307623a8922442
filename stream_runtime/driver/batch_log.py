"""Logs the size of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_runtime.worker.task import TaskResult

_logger = structlog.get_logger(__name__)


def log_batch(results: Sequence[TaskResult], seconds: float) -> None:
    """Log the totals of all tasks of a batch."""
    reports = [result.report for result in results if result.report is not None]
    _logger.debug(
        "batch",
        partitions=len(results),
        messages=sum(report.messages for report in reports),
        changes=sum(report.changes for report in reports),
        read_bytes=sum(report.state.read for report in reports),
        written_bytes=sum(report.state.written for report in reports),
        slowest_ms=round(1000 * max((report.seconds for report in reports), default=0.0)),
        ms=round(1000 * seconds),
    )
