"""The driver's log events about stalled publishers."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import structlog

from materializer.job.batch_log import stalled_publishers
from materializer.processing.fold_report import FoldReport
from stream_runtime.exactly_once.report import Report
from stream_runtime.worker.task import TaskResult
from tests.support.stream_runtime.shares import share

if TYPE_CHECKING:
    import pytest

HOST = UUID(int=5)


def test_a_stalled_publisher_is_logged_every_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("materializer.job.batch_log.time.monotonic", lambda: now)
    alert = stalled_publishers()
    results = [
        TaskResult(
            share("cdc.raw.ks.t", partition),
            Report(0, 1, 1, 0, 1, 0.1, own=FoldReport(stalled_publishers=hosts)),
            None,
        )
        for partition, hosts in enumerate([[str(HOST)], [str(HOST)], []])
    ]
    with structlog.testing.capture_logs() as logged:
        alert.log_found(results)
        alert.log_found(results)
        now += 601
        alert.log_found(results)
    assert [(entry["code"], entry["host"], entry["topic"]) for entry in logged] == [
        ("CDC-068", str(HOST), "cdc.raw.ks.t")
    ] * 2
