"""`state reshard --spark`: its tasks run in executors, which are killed at each step, and so is the command."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import pytest

from dev.local_stack.process.paths import project_root
from materializer.commands.reshard.reshard import Reshard
from materializer.fault_points import ReshardPoint
from stream_runtime import fault_points
from stream_runtime.fault_points import Fault
from stream_runtime.query.spark_tasks import spark_tasks
from tests.support.materializer.reshard_run import PARTITIONS, continue_and_check, grow, in_child, make_run
from tests.support.materializer.table_job import PatientPlanner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dev.local_stack.servers.kafka import KafkaBroker
    from dev.local_stack.servers.s3 import S3Server
    from materializer.commands.reshard.tasks import Tasks
    from tests.support.materializer.reshard_run import Run
    from tests.support.materializer.table_job import TableJob

T = TypeVar("T")
R = TypeVar("R")
pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]
MASTER = "local-cluster[2,1,1024]"


class Faults(NamedTuple):
    """The processes that die: one of an executor, once, and the command. `once`: the file that its death makes."""

    in_task: ReshardPoint
    of_command: ReshardPoint | None
    once: Path


# Each run goes on where the one before was killed. The last one comes to the end.
STEPS = [
    (ReshardPoint.AFTER_MARK, ReshardPoint.BEFORE_SWITCH),
    (ReshardPoint.IN_REDISTRIBUTION, ReshardPoint.AFTER_SWITCH),
    (ReshardPoint.IN_FOLD, ReshardPoint.IN_COMMIT),
    (ReshardPoint.IN_BACKLOG, None),
]


class DyingTasks:
    """Tasks whose process dies at a point, once."""

    is_here = False

    def __init__(self, tasks: Tasks, faults: Faults) -> None:
        self._tasks = tasks
        self._faults = faults

    def run(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        return self._tasks.run(partial(_arm_and_work, self._faults, work), items)

    def groups(self, items: Sequence[T]) -> list[Sequence[T]]:
        return self._tasks.groups(items)


def _arm_and_work(faults: Faults, work: Callable[[T], R], item: T) -> R:
    fault_points.armed = Fault(faults.in_task, 1, "kill")
    os.environ["CDC_FAULT_ONCE"] = str(faults.once)
    return work(item)


def reshard(job: TableJob, faults: Faults) -> None:
    """Reshard in a separate process, which starts Spark."""
    os.environ["PYTHONPATH"] = str(project_root())
    if faults.of_command is not None:
        fault_points.armed = Fault(faults.of_command, 1, "kill")
    plan = PatientPlanner(job.settings, job.registry, must_fit=False).plan_batch()
    with spark_tasks(job.settings.materializer) as tasks:
        Reshard(plan, job.raw.topic, print, DyingTasks(tasks, faults)).reshard_topic()


def run_once(run: Run, faults: Faults) -> int:
    """The exit status of the command. The task died if it was to."""
    status = in_child(reshard, run.job, faults)
    assert faults.once.exists()
    return status


@pytest.mark.exhaustive
def test_an_executors_death_does_not_end_it(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> None:
    run = make_run(kafka, topic_prefix, tmp_path, spark_master=MASTER)
    grow(run)
    assert run_once(run, Faults(ReshardPoint.IN_REDISTRIBUTION, None, tmp_path / "once")) == 0
    assert "are in the right partitions" in run.reshard()[-1]
    continue_and_check(run)
    assert not [*tmp_path.rglob("*.parts/*")]


@pytest.mark.exhaustive
def test_executors_and_the_command_may_die_at_each_step(
    kafka: KafkaBroker, s3: S3Server, topic_prefix: str, tmp_path: Path
) -> None:
    location = s3.location(topic_prefix)
    run = make_run(kafka, topic_prefix, tmp_path, spark_master=MASTER, checkpoint_location=location)
    grow(run)
    for number, (in_task, of_command) in enumerate(STEPS):
        status = run_once(run, Faults(in_task, of_command, tmp_path / f"once-{number}"))
        assert status == (0 if of_command is None else -signal.SIGKILL)
        run.send(4, PARTITIONS)
    assert "are in the right partitions" in run.reshard()[-1]
    continue_and_check(run)
