"""What the driver does with a batch whose tasks could not go on."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from cdc_program.errors import CdcError, Code
from cdc_program.settings import Settings
from materializer import spark
from materializer.position import RawPartition
from materializer.spark import Batches
from materializer.task import Report
from materializer.worker import TaskResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from materializer.plan import BatchPlan

DONE = Report(0, 1, 1, 0, 1, 0.1)
FRAME: Any = None


class Planned:
    """A planner whose plan says nothing."""

    def raw_partitions(self) -> list[RawPartition]:
        return []

    def plan(self) -> object | None:
        return object()


class ScriptedBatches(Batches):
    """Each attempt at the batch ends with the next of the codes, None for a success."""

    def __init__(self, *codes: Code | None) -> None:
        planner: Any = Planned()
        super().__init__(Settings(), planner, threading.Event(), None)
        self.left = list(codes)

    def _run(self, frame: DataFrame, plan: BatchPlan) -> list[TaskResult]:
        del frame, plan
        code = self.left.pop(0)
        error = None if code is None else CdcError(code, "It does not go.", "Make it go.")
        return [TaskResult(RawPartition("cdc.raw.ks.t", 0), DONE if error is None else None, error)]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "_RETRY_SECONDS", 0.01)


def test_a_location_that_is_away_is_waited_for() -> None:
    batches = ScriptedBatches(*[Code.CHECKPOINT_LOCATION] * 5, None)
    batches(FRAME, 1)
    assert batches.left == []
    assert batches.failure is None


def test_damage_is_not_waited_for() -> None:
    batches = ScriptedBatches(Code.CHECKPOINT_LOCATION, Code.STATE_DAMAGED, None)
    batches(FRAME, 1)
    assert batches.left == [None]
    assert batches.failure is not None
    assert batches.failure.code is Code.STATE_DAMAGED


def test_a_schema_is_waited_for_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = ScriptedBatches(Code.SCHEMA_UNKNOWN, Code.CHECKPOINT_LOCATION, None)
    batches(FRAME, 1)
    assert batches.failure is None
    monkeypatch.setattr("materializer.spark.time.monotonic", iter(range(0, 10_000, 100)).__next__)
    batches = ScriptedBatches(Code.SCHEMA_UNKNOWN, None)
    batches(FRAME, 1)
    assert batches.failure is not None
    assert batches.failure.code is Code.SCHEMA_UNKNOWN
