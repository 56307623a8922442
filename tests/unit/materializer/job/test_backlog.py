"""What the driver does with a batch whose tasks could not go on."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from cdc_program.errors import CdcError, Code
from cdc_program.settings import Settings
from materializer.exactly_once.partition_task import Report
from materializer.job import driver
from materializer.job.driver import Batches
from materializer.job.worker_loop import TaskResult
from materializer.records import RawPartition

if TYPE_CHECKING:
    from materializer.job.plan import BatchPlan

DONE = Report(0, 1, 1, 0, 1, 0.1)


class Planned:
    """A planner whose plan says nothing."""

    def plan(self) -> object:
        return SimpleNamespace(shapes={})


class ScriptedBatches(Batches):
    """Each attempt at the batch ends with the next of the codes, None for a success."""

    def __init__(self, *codes: Code | None) -> None:
        planner: Any = Planned()
        workers: Any = None
        super().__init__(Settings(), planner, threading.Event(), workers)
        self.left = list(codes)

    def _run(self, plan: BatchPlan) -> list[TaskResult]:
        del plan
        code = self.left.pop(0)
        error = None if code is None else CdcError(code, "It does not go.", "Make it go.")
        return [TaskResult(RawPartition("cdc.raw.ks.t", 0), DONE if error is None else None, error)]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_RETRY_SECONDS", 0.01)


def test_a_location_that_is_away_is_waited_for() -> None:
    batches = ScriptedBatches(*[Code.CHECKPOINT_LOCATION] * 5, None)
    batches.process()
    assert batches.left == []


def test_damage_is_not_waited_for() -> None:
    batches = ScriptedBatches(Code.CHECKPOINT_LOCATION, Code.STATE_DAMAGED, None)
    with pytest.raises(CdcError) as raised:
        batches.process()
    assert batches.left == [None]
    assert raised.value.code is Code.STATE_DAMAGED


def test_a_schema_is_waited_for_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = ScriptedBatches(Code.SCHEMA_UNKNOWN, Code.CHECKPOINT_LOCATION, None)
    batches.process()
    assert batches.left == []
    batches = ScriptedBatches(Code.SCHEMA_UNKNOWN, Code.SCHEMA_UNKNOWN, None)
    monkeypatch.setattr("materializer.job.driver.time.monotonic", iter(range(0, 10_000, 10)).__next__)
    with pytest.raises(CdcError) as raised:
        batches.process()
    assert batches.left == [None]
    assert raised.value.code is Code.SCHEMA_UNKNOWN


def test_a_schema_that_has_just_come_is_not_spoken_of(capsys: pytest.CaptureFixture[str]) -> None:
    batches = ScriptedBatches(Code.SCHEMA_UNKNOWN, None)
    batches.process()
    assert "waiting" not in capsys.readouterr().out
