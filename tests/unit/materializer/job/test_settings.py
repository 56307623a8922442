"""From settings to the fold's rules, and what is said of silent publishers."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import structlog

from cdc_program.settings import MaterializerSettings
from materializer.exactly_once.partition_task import Report
from materializer.job.driver import SilenceAlert
from materializer.job.processor import fold_rules
from materializer.job.worker_loop import TaskResult
from materializer.records import RawPartition

if TYPE_CHECKING:
    import pytest

HOST = UUID(int=5)


def test_the_rules_are_the_settings_in_the_folds_units() -> None:
    settings = MaterializerSettings(
        reorder_seconds=1.5, purge_margin_seconds=7, stalled_publisher_seconds=900, forgotten_publishers=[HOST]
    )
    rules = fold_rules(settings)
    assert (rules.reorder_ms, rules.purge_margin_seconds, rules.stalled_publisher_ms) == (1500, 7, 900_000)
    assert rules.forgotten_publishers == {HOST.bytes}


def test_the_time_is_stored_before_anything_takes_the_stored_one_for_too_old() -> None:
    assert fold_rules(MaterializerSettings()).keep_time_ms == 600_000
    assert fold_rules(MaterializerSettings(stalled_publisher_seconds=60)).keep_time_ms == 30_000
    assert fold_rules(MaterializerSettings(max_clock_jump_hours=0.1)).keep_time_ms == 180_000


def test_a_silent_publisher_is_named_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("materializer.job.driver.time.monotonic", lambda: now)
    alert = SilenceAlert()
    results = [
        TaskResult(RawPartition("cdc.raw.ks.t", partition), Report(0, 1, 1, 0, 1, 0.1, hosts), None)
        for partition, hosts in enumerate([[str(HOST)], [str(HOST)], []])
    ]
    with structlog.testing.capture_logs() as logged:
        alert.report(results)
        alert.report(results)
        now += 601
        alert.report(results)
    assert [(entry["code"], entry["host"], entry["topic"]) for entry in logged] == [
        ("CDC-068", str(HOST), "cdc.raw.ks.t")
    ] * 2
