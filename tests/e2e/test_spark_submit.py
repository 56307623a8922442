"""The materializer by spark-submit, on workers without the project's code: docs/guides/spark.md says how."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

import pytest

from cdc_common.errors.codes import Code
from dev.local_stack.clients import cql
from dev.local_stack.demo import shop
from dev.local_stack.demo.load import Load
from dev.local_stack.process.paths import project_root
from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.spark_cluster import SparkCluster, executors, python_workers
from dev.local_stack.servers.spark_submit import SubmittedJob
from stream_runtime.query.spark_archive import write_archive
from tests.support.e2e.submitted import (
    WAIT_SECONDS,
    Scene,
    as_newer_build,
    check_is_of_archive,
    raw_messages,
    stack_of_jobs,
    states,
    submitted_job,
)
from tests.support.e2e.where_from import SAYS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.stack import Stack

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(900)]

ROCKSDB = "rocksdict"
RATE = 100.0
BACKLOG_SECONDS = 20.0
STOP_SECONDS = 120.0
LEAST_ROWS = 300
LOCAL_CLUSTER = "local-cluster[2,1,1024]"
TERMINATED = 128 + signal.SIGTERM  # Java's own status
STOPPING = "spark jvm is shutting down"
BACKLOG_TABLES = 4
EARLY_TABLES, LATE_TABLES = 12, 4


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("archive") / "materializer.tar.gz"
    write_archive(target, "materializer")
    return target


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with stack_of_jobs(tmp_path_factory.mktemp("stack")) as running:
        yield running


@pytest.fixture(scope="module")
def client(stack: Stack) -> Iterator[CqlClient]:
    with cql.connect(stack.servers.cassandra_hosts, stack.servers.cassandra_port) as client:
        yield client


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    with SparkCluster(workers=2) as running:
        yield running


@pytest.fixture(scope="module")
def scene(stack: Stack, client: CqlClient) -> Iterator[Scene]:
    """The changes of all tests of this module. The stack's own job ends before there is a table: each test's job goes
    on where the one before has ended, the first from nothing.
    """
    stack.materializer.stop()
    shop.create(client)
    made = Scene(stack, client)
    made.tables = [(shop.KEYSPACE, table) for table in shop.MARKED]
    yield made
    made.reader.close()


def test_a_backlog_from_nothing_in_a_local_cluster(stack: Stack, scene: Scene, archive: Path, tmp_path: Path) -> None:
    """Spark starts the executors itself, with the driver's environment; one dies in the midst of the backlog."""
    scene.make_tables("backlog", BACKLOG_TABLES)
    load = Load(scene.client, RATE, BACKLOG_SECONDS, seed=time.time_ns())
    load.start()
    scene.write("backlog", "first")
    load.wait()
    assert load.error is None
    wait_until(lambda: raw_messages(stack, scene.tables) > load.sent, "the backlog", WAIT_SECONDS)
    assert scene.reader.read_all() == []

    without_path = ("--conf", "spark.executorEnv.PYTHONPATH=")
    job = submitted_job(stack, LOCAL_CLUSTER, archive, tmp_path, without_path, max_offsets_per_trigger=100)
    job.start()
    try:
        scene.wait_for_changes(100)
        before = executors(job)
        assert len(before) == 2
        assert scene.history.count < load.sent / 2
        os.kill(before[0], signal.SIGKILL)
        wait_until(lambda: len(set(executors(job)) - set(before)) == 1, "another executor", WAIT_SECONDS)
        check_is_of_archive(partial(python_workers, job), ROCKSDB)
        assert scene.settle() > LEAST_ROWS
        job.check()
    finally:
        job.stop(STOP_SECONDS)


def test_executors_import_all_from_the_archive(cluster: SparkCluster, archive: Path, tmp_path: Path) -> None:
    """The job runs by spark-submit, with a main file that asks each executor where its modules are."""
    asked = SubmittedJob(cluster.url, archive, folder=tmp_path, settings={}, main="tests/support/e2e/where_from.py")
    asked.start_process()
    assert asked.process is not None
    assert asked.process.wait(WAIT_SECONDS) == 0, asked.output()
    [line] = [line for line in asked.output().splitlines() if line.startswith(SAYS)]
    driver, *workers = json.loads(line.removeprefix(SAYS))
    assert len(workers) == 2
    assert Path(driver["materializer.job.run"]).is_relative_to(project_root())
    for place in (worker.work_directory for worker in cluster.workers):
        [found] = [
            files for files in workers if Path(files["materializer.worker.open_partitions"]).is_relative_to(place)
        ]
        assert found.keys() > driver.keys() - {"materializer.job.run"}
        assert all(Path(file).is_relative_to(place) for file in found.values()), found


def test_executors_and_workers_that_die_lose_and_double_nothing(
    stack: Stack, cluster: SparkCluster, scene: Scene, archive: Path, tmp_path: Path
) -> None:
    """One job for all tables; some are made under way. Each worker's executor has its own local states."""
    job = submitted_job(stack, cluster.url, archive, tmp_path)
    first, second = cluster.workers
    job.start()
    try:
        scene.make_tables("early", EARLY_TABLES)
        load = Load(scene.client, RATE, WAIT_SECONDS * 3)
        load.start()
        scene.write("early", "first")
        scene.wait_for_changes(500)
        for worker in (first, second):
            check_is_of_archive(partial(python_workers, worker), ROCKSDB)

        [executor] = executors(first)
        os.kill(executor, signal.SIGKILL)
        wait_until(lambda: executors(first) not in ([], [executor]), "another executor", WAIT_SECONDS)
        scene.make_tables("late", LATE_TABLES)
        scene.write("late", "first")
        scene.wait_for_changes(1000)

        lost = states(second)
        assert lost
        second.kill()  # with its executor and their local states
        shutil.rmtree(second.work_directory)
        scene.write("early", "second")
        scene.write("late", "second")
        scene.wait_for_changes(1000)
        wait_until(lambda: states(first) >= lost, "all partitions on the other worker", WAIT_SECONDS)
        second.start()
        scene.wait_for_changes(500)
        scene.write("late", "third")
        load.stop()
        assert load.error is None
        assert scene.settle() > LEAST_ROWS
        job.check()
    finally:
        job.stop()


def test_it_ends_when_spark_submit_is_told_to_and_when_that_dies(
    stack: Stack, cluster: SparkCluster, scene: Scene, archive: Path, tmp_path: Path
) -> None:
    """SIGTERM to spark-submit, as YARN and Kubernetes send it, ends the driver as its own does; kill -9 ends it, too.
    Each job has other scratch folders.
    """
    load = Load(scene.client, RATE, WAIT_SECONDS * 3)
    load.start()
    jobs = [submitted_job(stack, cluster.url, archive, tmp_path / name) for name in ("told", "killed", "last")]
    told, killed, last = jobs
    try:
        told.start()
        scene.wait_for_changes(300)
        told_process = told.process
        assert told_process is not None
        told_process.send(signal.SIGTERM)
        assert told_process.wait(STOP_SECONDS) == TERMINATED
        assert STOPPING in told.output()
        assert "Traceback" not in told.output()
        assert "error CDC" not in told.output()
        wait_until(lambda: told_process.members() == [], "its driver to end", WAIT_SECONDS)

        killed.start()
        scene.wait_for_changes(300)
        killed_process = killed.process
        assert killed_process is not None
        killed_process.kill_leader()
        wait_until(lambda: killed_process.members() == [], "its driver to end", WAIT_SECONDS)

        last.start()
        scene.wait_for_changes(300)
        load.stop()
        assert load.error is None
        assert scene.settle() > LEAST_ROWS
    finally:
        load.stop()
        for job in jobs:
            job.stop(STOP_SECONDS)


def test_a_state_of_a_newer_build_is_refused_and_left_alone(
    stack: Stack, cluster: SparkCluster, scene: Scene, archive: Path, tmp_path: Path
) -> None:
    """Its raw partitions stop; nothing is folded, and the state's own build goes on with it."""
    scene.make_tables("newer", 1)
    job = submitted_job(stack, cluster.url, archive, tmp_path / "own")
    job.start()
    try:
        scene.write("newer", "first")
        scene.settle()
    finally:
        job.stop(STOP_SECONDS)
    scene.write("newer", "second")
    location = str(stack.materializer.settings["materializer.checkpoint_location"])
    newer = tmp_path / "newer-checkpoint"
    shutil.copytree(urlparse(location).path, newer)
    assert as_newer_build(newer) > 0
    refused = submitted_job(stack, cluster.url, archive, tmp_path / "refused", checkpoint_location=newer.as_uri())
    refused.start()
    try:
        wait_until(lambda: f'"code": "{Code.STATE_FORMAT.text}"' in refused.output(), "the stop", WAIT_SECONDS)
        assert "Traceback" not in refused.output()
    finally:
        refused.stop(STOP_SECONDS)
    assert scene.reader.read_all() == []
    job.start()
    try:
        scene.settle()
        job.check()
    finally:
        job.stop(STOP_SECONDS)
