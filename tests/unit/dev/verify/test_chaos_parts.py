"""The faults of the runs over the whole path, and the Sparks that they are struck in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rich.console import Console

from dev.verify.chaos.__main__ import hurt
from dev.verify.chaos.faults import StackFault, strikes
from dev.verify.chaos.masters import MASTERS, running_spark
from dev.verify.chaos.matrix import Action, Cell, NotReachedError, Outcome, judge
from stream_runtime.fault_points import FaultPoint


@pytest.mark.parametrize("has_spark_workers", [False, True])
def test_consecutive_seeds_go_through_all_faults_that_there_can_be(*, has_spark_workers: bool) -> None:
    expected = {fault for fault in StackFault if has_spark_workers or fault is not StackFault.SPARK_WORKER}
    runs = [strikes(seed, 8.0, 2, has_spark_workers=has_spark_workers) for seed in range(len(expected))]
    assert {strike.fault for run in runs for strike in run} == expected
    assert all(0.5 <= first.after <= second.after <= 8.0 for first, second in runs)


def test_a_job_s_executors_get_the_options_and_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", "/before")
    with running_spark(MASTERS["dynamic"], print) as spark:
        file = Path(os.environ["SPARK_CONF_DIR"], "spark-defaults.conf")
        assert "spark.dynamicAllocation.maxExecutors 3" in file.read_text().splitlines()
        spark.set_environment({"CDC_FAULT": "after_commit:2"})
        assert "spark.executorEnv.CDC_FAULT after_commit:2" in file.read_text().splitlines()
        spark.set_environment({})
        assert "CDC_FAULT" not in file.read_text()
        assert spark.settings == {"materializer.spark_master": "local-cluster[3,1,1024]"}
        assert spark.executor_pids() == []
    assert os.environ["SPARK_CONF_DIR"] == "/before"


def test_a_point_that_is_reached_fewer_times_than_it_was_counted() -> None:
    """A state that was stored a moment later has other files: the cell is hurt at the last time, not left out."""
    struck: list[int] = []

    def run(cell: Cell) -> Outcome:
        struck.append(cell.nth)
        return judge(cell, lambda: strike(cell))

    def strike(cell: Cell) -> None:
        if cell.nth > 6:
            raise NotReachedError(cell, 6)
        if cell.nth == 6:
            raise AssertionError("rows are missing")

    cells = [Cell(FaultPoint.IN_FETCH, Action.SLEEPER, nth, "fresh") for nth in (5, 9)]
    well, again = hurt(Console(quiet=True), cells, None, run)
    assert struck == [5, 9, 6]
    assert (well.problem, again.problem, again.cell.nth, again.reached) == ("", "rows are missing", 6, 0)
