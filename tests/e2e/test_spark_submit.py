"""The materializer by spark-submit, on a cluster whose workers have nothing of ours: docs/spark.md says how."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from local_stack import cql, shop
from local_stack.demo_load import Load
from local_stack.processes import wait_until
from local_stack.spark_cluster import SparkCluster
from local_stack.stack import Stack
from materializer.archive import write_archive
from tests.e2e.submitted import WAIT_SECONDS, Scene, states, submitted_job

if TYPE_CHECKING:
    from collections.abc import Iterator

    from local_stack.cql import CqlClient
    from local_stack.spark_cluster import SparkServer

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(900)]

RATE = 100.0
FIRST_SECONDS = 5.0
LEAST_ROWS = 300
EARLY_TABLES, LATE_TABLES = 12, 4


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("archive") / "materializer.tar.gz"
    write_archive(target)
    return target


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    os.environ["CDC_SERVERS"] = str(tmp_path_factory.mktemp("stack") / "servers.json")
    with Stack(settings={"publisher.heartbeat_seconds": 2}) as running:
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
    """The changes of all tests of this module, which go on where the stack's own job, in a local cluster, ends."""
    shop.create(client)
    made = Scene(stack, client)
    made.tables = [(shop.KEYSPACE, table) for table in shop.MARKED]
    write_for(made, FIRST_SECONDS)
    made.settle()
    stack.materializer.stop()
    yield made
    made.reader.close()


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
            check_is_of_archive(worker)

        [executor] = first.executors()
        os.kill(executor, signal.SIGKILL)
        wait_until(lambda: first.executors() not in ([], [executor]), "another executor", WAIT_SECONDS)
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


def write_for(scene: Scene, seconds: float) -> None:
    load = Load(scene.client, RATE, seconds, seed=time.time_ns())
    load.start()
    load.wait()
    assert load.error is None


def check_is_of_archive(worker: SparkServer) -> None:
    """RocksDB's library in its Python processes is the archive's, and they have no way to anything else of ours."""
    wait_until(lambda: bool(rocksdb_libraries(worker)), "an executor to fold", WAIT_SECONDS)
    assert all(worker.work_directory in library.parents for library in rocksdb_libraries(worker))
    for pid in worker.python_workers():
        given = psutil.Process(pid).environ().get("PYTHONPATH", "").split(os.pathsep)
        assert not [part for part in given if Path(part, "materializer").exists()]


def rocksdb_libraries(worker: SparkServer) -> set[Path]:
    maps = (found for pid in worker.python_workers() for found in psutil.Process(pid).memory_maps())
    return {Path(found.path) for found in maps if "rocksdict" in found.path}
