"""Executors that come, go and die under the streaming query: `local-cluster`, with and without dynamic allocation."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psutil
import pytest
from pyspark.sql import SparkSession

from dev.local_stack.process.paths import project_root
from tests.support.materializer.streaming_job import RAW, Job
from tests.support.materializer.streaming_task import read_folded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

WAIT_SECONDS = 180.0


@contextmanager
def spark(master: str, **options: object) -> Iterator[SparkSession]:
    """A Spark with the options, whose executors have our packages."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    builder = builder.config("spark.executorEnv.PYTHONPATH", str(project_root()))
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    for name, value in options.items():
        builder = builder.config(f"spark.{name.replace('_', '.')}", str(value))
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def descendants(name: str, *words: str) -> list[psutil.Process]:
    """The processes below this one of the name, with all words in their command lines."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            line = " ".join(process.cmdline())
            if process.name().startswith(name) and all(word in line for word in words):
                found.append(process)
        except psutil.NoSuchProcess:
            pass
    return found


def executors() -> list[psutil.Process]:
    """The executors' JVMs, without the copies that fork makes of them until they execute another program."""
    found = descendants("java", "CoarseGrainedExecutorBackend")
    pids = {process.pid for process in found}
    return [process for process in found if process.ppid() not in pids]


def run_until(job: Job, condition: Callable[[], bool], seconds: float = 0.2, **task: bool) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        job.run(seconds, **task)


def last_round(job: Job) -> dict[str, int]:
    """The process of each raw partition that was folded in the last round."""
    return {folded.raw_partition: folded.process for folded in read_folded(job.folder) if folded.round == job.rounds}


def is_whole(job: Job, processes: int) -> bool:
    """Whether the last round folded all raw partitions in so many processes."""
    found = last_round(job)
    return len(found) == len(RAW) and len(set(found.values())) == processes


@pytest.mark.exhaustive
def test_executors_with_two_cores_have_two_workers_each_and_may_die(tmp_path: Path) -> None:
    with spark("local-cluster[2,2,1024]") as session:
        job = Job(session, tmp_path)
        job.run(0.2)
        run_until(job, lambda: is_whole(job, 4))
        homes, kept = last_round(job), 0
        for _ in range(10):
            before = homes
            job.run(0.2)
            homes = last_round(job)
            kept += homes == before
        assert kept >= 5  # on a busy machine a task may start when another one has ended, in its worker

        killed = next(iter(homes.values()))
        os.kill(killed, signal.SIGKILL)  # a worker process
        job.run(0.2)
        run_until(job, lambda: is_whole(job, 4))
        assert killed not in last_round(job).values()

        executors()[0].kill()
        job.run(0.2)
        run_until(job, lambda: is_whole(job, 4) and len(executors()) == 2)  # the master has started another one
        job.check_nothing_twice()
        job.workers.stop()


@pytest.mark.exhaustive
def test_dynamic_allocation_adds_executors_while_it_is_behind_and_removes_idle_ones(tmp_path: Path) -> None:
    with spark(
        "local-cluster[3,1,1024]",
        dynamicAllocation_enabled="true",
        dynamicAllocation_shuffleTracking_enabled="true",
        dynamicAllocation_minExecutors=0,
        dynamicAllocation_maxExecutors=3,
        dynamicAllocation_executorIdleTimeout="15s",  # longer than a pause between two micro-batches on a busy machine
        executor_cores=1,
    ) as session:
        job = Job(session, tmp_path)
        job.run(0.2)
        assert len(executors()) <= 2  # Spark's defaultParallelism is 2 at least
        run_until(job, lambda: is_whole(job, 3), is_cut=False, is_behind=True)
        assert len(executors()) == 3
        run_until(job, lambda: len(executors()) == 1, 0.0, is_cut=False)
        run_until(job, lambda: is_whole(job, 1))
        run_until(job, lambda: is_whole(job, 2), is_cut=False, is_behind=True)  # and once more
        job.check_nothing_twice()
        job.workers.stop()


@pytest.mark.exhaustive
def test_an_executor_that_is_decommissioned_gives_its_raw_partitions_away(tmp_path: Path) -> None:
    """A cloud does the same with a machine that it takes back: the executor ends its tasks, and gets no more."""
    with spark("local-cluster[2,1,1024]", decommission_enabled="true") as session:
        job = Job(session, tmp_path)
        job.run(0.2)
        run_until(job, lambda: is_whole(job, 2))
        taken = executors()[0]
        workers = {process.pid for process in taken.children(recursive=True)}
        assert workers & set(last_round(job).values())
        taken.send_signal(signal.SIGPWR)
        run_until(job, lambda: not taken.is_running() or taken.status() == psutil.STATUS_ZOMBIE)
        run_until(job, lambda: is_whole(job, 2))  # the master has started another one
        assert not workers & set(last_round(job).values())
        job.check_nothing_twice()
        job.workers.stop()


@pytest.mark.exhaustive
def test_an_executor_that_is_excluded_gives_its_raw_partitions_away(tmp_path: Path) -> None:
    """Spark places no more tasks there. Its processes live, and have nothing to do."""
    with spark(
        "local-cluster[2,1,1024]",
        excludeOnFailure_enabled="true",
        excludeOnFailure_application_maxFailedTasksPerExecutor=1,
        excludeOnFailure_task_maxTaskAttemptsPerExecutor=1,
        excludeOnFailure_stage_maxFailedTasksPerExecutor=1,
        excludeOnFailure_timeout="1h",
    ) as session:
        job = Job(session, tmp_path)
        job.run(0.2)
        run_until(job, lambda: is_whole(job, 2))
        homes = set(last_round(job).values())
        job.run(fails_once=True)
        run_until(job, lambda: is_whole(job, 1))
        assert set(last_round(job).values()) < homes
        assert len(executors()) == 2
        job.check_nothing_twice()
        job.workers.stop()
