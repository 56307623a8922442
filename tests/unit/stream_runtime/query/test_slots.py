"""How many tasks a micro-batch has and how long it lasts, with and without dynamic allocation."""

from __future__ import annotations

import pytest

from stream_runtime.query.slots import Planned, Slots, seconds

DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.maxExecutors": "3",
    "spark.dynamicAllocation.executorIdleTimeout": "20s",
    "spark.executor.cores": "2",
}


class Scene:
    """Slots whose clock and cores are set by hand."""

    def __init__(self, **changes: str) -> None:
        self.now = 100.0
        self.cores = 2
        conf = {**DYNAMIC, **{f"spark.{name.replace('_', '.')}": value for name, value in changes.items()}}
        self.slots = Slots(conf, lambda: self.cores, 5.0, lambda: self.now)

    def plan(self, processes: int, load: float = 0.0, *, is_behind: bool = False, raw_partitions: int = 100) -> Planned:
        return self.slots.plan(raw_partitions, processes, load, is_behind=is_behind)


@pytest.mark.parametrize(("cores", "cpus", "tasks"), [(4, "1", 4), (4, "2", 2), (1, "2", 1), (0, "1", 1)])
def test_a_task_for_each_core(cores: int, cpus: str, tasks: int) -> None:
    slots = Slots({"spark.task.cpus": cpus}, lambda: cores, 3.0)
    assert slots.plan(100, 0, 0.0, is_behind=True) == Planned(tasks, 3.0) == slots.planned


def test_while_it_is_behind_there_are_more_tasks_than_cores_for_longer_than_spark_waits() -> None:
    scene = Scene(**{"dynamicAllocation.schedulerBacklogTimeout": "5s"})
    assert scene.plan(2, is_behind=True) == Planned(4, 7.0)
    assert scene.plan(4, is_behind=True) == Planned(6, 7.0)
    assert scene.plan(6, is_behind=True) == Planned(6, 5.0)  # all that Spark may start
    assert scene.plan(2, is_behind=True, raw_partitions=3) == Planned(3, 7.0)
    assert scene.plan(3, is_behind=True, raw_partitions=3) == Planned(3, 5.0)  # each has one


def test_after_an_idle_while_few_tasks_remain_until_spark_has_removed_the_other_executors() -> None:
    scene = Scene()
    scene.now += 20
    assert scene.plan(6) == Planned(6, 5.0)
    scene.now += 5
    assert scene.plan(6) == Planned(1, 22.0, is_exact=True)
    scene.cores = 2
    assert scene.plan(1) == Planned(1, 22.0, is_exact=True)  # of an executor with two cores one may go on
    scene.cores = 1
    assert scene.plan(1) == Planned(1, 5.0)


def test_the_least_executors_keep_their_tasks() -> None:
    scene = Scene(**{"dynamicAllocation.minExecutors": "2"})
    scene.now += 100
    assert scene.plan(6) == Planned(4, 22.0, is_exact=True)
    scene.cores = 4
    assert scene.plan(4) == Planned(4, 5.0)


def test_a_busy_job_keeps_its_executors() -> None:
    scene = Scene()
    for _ in range(5):
        scene.now += 15
        assert scene.plan(4, load=1.5) == Planned(4, 5.0)
    scene.now += 15
    assert not scene.plan(4).is_exact


@pytest.mark.parametrize(
    ("text", "expected"), [("60s", 60.0), ("90", 90.0), ("1min", 60.0), ("500ms", 0.5), ("2h", 7200.0), ("1m", 60.0)]
)
def test_sparks_times(text: str, expected: float) -> None:
    assert seconds(text) == expected
