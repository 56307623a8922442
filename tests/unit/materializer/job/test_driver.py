"""How the driver handles a batch whose tasks report errors."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from cdc_program.errors import CdcError, Code
from cdc_program.settings import Settings
from materializer.exactly_once.partition_task import Report
from materializer.job import driver
from materializer.job.driver import BatchDriver
from materializer.job.worker_loop import TaskResult
from materializer.records import RawPartition

if TYPE_CHECKING:
    from materializer.job.plan import BatchPlan

DONE = Report(0, 1, 1, 0, 1, 0.1)


class EmptyPlanner:
    """A planner whose plan is empty."""

    def plan_batch(self) -> object:
        return SimpleNamespace(shapes={})


class ScriptedDriver(BatchDriver):
    """Each attempt at the batch ends with the next of the codes, None for a success."""

    def __init__(self, *codes: Code | None) -> None:
        planner: Any = EmptyPlanner()
        workers: Any = None
        super().__init__(Settings(), planner, threading.Event(), workers)
        self.left = list(codes)

    def _run_tasks(self, plan: BatchPlan) -> list[TaskResult]:
        del plan
        code = self.left.pop(0)
        error = None if code is None else CdcError(code, "It does not go.", "Make it go.")
        return [TaskResult(RawPartition("cdc.raw.ks.t", 0), DONE if error is None else None, error)]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_RETRY_SECONDS", 0.01)


def test_an_unreachable_checkpoint_location_is_retried() -> None:
    scripted = ScriptedDriver(*[Code.CHECKPOINT_LOCATION] * 5, None)
    scripted.run_batch()
    assert scripted.left == []


def test_damage_is_not_retried() -> None:
    scripted = ScriptedDriver(Code.CHECKPOINT_LOCATION, Code.STATE_DAMAGED, None)
    with pytest.raises(CdcError) as raised:
        scripted.run_batch()
    assert scripted.left == [None]
    assert raised.value.code is Code.STATE_DAMAGED


def test_an_unknown_schema_is_retried_for_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = ScriptedDriver(Code.SCHEMA_UNKNOWN, Code.CHECKPOINT_LOCATION, None)
    scripted.run_batch()
    assert scripted.left == []
    scripted = ScriptedDriver(Code.SCHEMA_UNKNOWN, Code.SCHEMA_UNKNOWN, None)
    monkeypatch.setattr("materializer.job.driver.time.monotonic", iter(range(0, 10_000, 10)).__next__)
    with pytest.raises(CdcError) as raised:
        scripted.run_batch()
    assert scripted.left == [None]
    assert raised.value.code is Code.SCHEMA_UNKNOWN


def test_a_schema_that_has_just_arrived_is_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    scripted = ScriptedDriver(Code.SCHEMA_UNKNOWN, None)
    scripted.run_batch()
    assert "waiting" not in capsys.readouterr().out
