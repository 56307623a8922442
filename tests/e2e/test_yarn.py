"""The materializer on YARN, in client and in cluster mode: docs/guides/spark.md says how."""

from __future__ import annotations

import os
import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.clients import cql
from dev.local_stack.demo import shop
from dev.local_stack.demo.load import Load
from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.spark_submit import YarnClientJob, YarnClusterJob
from dev.local_stack.servers.yarn_cluster import YarnCluster, pack_spark_jars
from stream_runtime.query.spark_archive import write_archive
from tests.support.e2e.submitted import OWN, WAIT_SECONDS, Scene, check_is_of_archive, stack_of_jobs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.servers.programs import Setting
    from dev.local_stack.servers.stack import Stack

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(1200)]

RATE = 50.0
STOP_SECONDS = 120.0
TERMINATED = 128 + signal.SIGTERM  # Java's own status
ROCKSDB = "rocksdict"


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The archive of the materializer, and that of Spark's jars."""
    folder = tmp_path_factory.mktemp("archives")
    archive, spark_jars = folder / "materializer.tar.gz", folder / "spark-jars.zip"
    write_archive(archive, "materializer")
    pack_spark_jars(spark_jars)
    return archive, spark_jars


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with stack_of_jobs(tmp_path_factory.mktemp("stack")) as running:
        yield running


@pytest.fixture(scope="module")
def scene(stack: Stack) -> Iterator[Scene]:
    """The changes of all tests of this module: each job goes on where the one before has ended."""
    stack.materializer.stop()
    with cql.connect(stack.servers.cassandra_hosts, stack.servers.cassandra_port) as client:
        shop.create(client)
        made = Scene(stack, client)
        made.tables = [(shop.KEYSPACE, table) for table in shop.MARKED]
        yield made
        made.reader.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[YarnCluster]:
    with YarnCluster(nodes=2) as running:
        yield running


@pytest.fixture
def load(scene: Scene) -> Iterator[Load]:
    """Statements while the test runs. None may have failed."""
    with_end = Load(scene.client, RATE, WAIT_SECONDS * 10)
    with_end.start()
    yield with_end
    with_end.stop()
    assert with_end.error is None


def settings_of(stack: Stack) -> dict[str, Setting]:
    """The job takes the place of the stack's own."""
    return {**stack.materializer.settings, "materializer.state_directory": "state", **OWN}


def check_has_ended(cluster: YarnCluster) -> None:
    wait_until(lambda: cluster.executors() + cluster.masters() == [], "all containers to end", WAIT_SECONDS)
    assert "RUNNING" not in cluster.applications().values()


def test_client_mode(
    stack: Stack, scene: Scene, cluster: YarnCluster, packed: tuple[Path, Path], load: Load, tmp_path: Path
) -> None:
    """An executor dies, and then a node with all that it has."""
    job = YarnClientJob(cluster, *packed, folder=tmp_path, settings=settings_of(stack))
    job.start()
    first, second = cluster.nodes
    try:
        scene.wait_for_changes(100)
        check_is_of_archive(cluster.python_workers, ROCKSDB, cluster.folder.path)
        before = cluster.executors()
        assert len(before) == 2
        os.kill(before[0], signal.SIGKILL)
        wait_until(lambda: len(set(cluster.executors()) - set(before)) == 1, "another executor", WAIT_SECONDS)
        scene.wait_for_changes(100)

        second.kill()
        shutil.rmtree(second.folder / "local")
        scene.wait_for_changes(100)
        wait_until(lambda: len(first.executors()) == 2, "both executors on the other node", WAIT_SECONDS)
        second.start()
        scene.wait_for_changes(100)
        load.stop()
        scene.settle()
        job.check()
        assert job.process is not None
        job.process.send(signal.SIGTERM)
        assert job.process.wait(STOP_SECONDS) == TERMINATED
        check_has_ended(cluster)
    finally:
        job.stop(STOP_SECONDS)


def test_cluster_mode(
    stack: Stack, scene: Scene, cluster: YarnCluster, packed: tuple[Path, Path], load: Load, tmp_path: Path
) -> None:
    """The driver runs in an application master, which dies: YARN starts another one."""
    job = YarnClusterJob(cluster, *packed, folder=tmp_path, settings=settings_of(stack))
    job.start()
    try:
        scene.wait_for_changes(100)
        check_is_of_archive(cluster.python_workers, ROCKSDB, cluster.folder.path)
        [master] = cluster.masters()
        os.kill(cluster.executors()[0], signal.SIGKILL)
        scene.wait_for_changes(100)

        os.kill(master, signal.SIGKILL)
        wait_until(lambda: cluster.masters() not in ([], [master]), "another application master", WAIT_SECONDS)
        scene.wait_for_changes(200)
        load.stop()
        scene.settle()
        job.check()
        [running] = [name for name, state in cluster.applications().items() if state == "RUNNING"]
        cluster.end_application(running)
        assert job.process is not None
        assert job.process.wait(STOP_SECONDS) != 0
        check_has_ended(cluster)
    finally:
        job.stop(STOP_SECONDS)
