"""Transformers by spark-submit, on a cluster whose workers lack our packages: transformers.md says how."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.spark_cluster import SparkCluster, executors, python_workers
from dev.local_stack.servers.spark_submit import TRANSFORMER, SubmittedJob
from stream_runtime.query.spark_archive import write_archive
from tests.support.e2e.submitted import WAIT_SECONDS, check_is_of_archive
from tests.support.transformer.scene import SECOND_STEPS, STEPS, Scene

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.servers.programs import Setting

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(900)]

HASH = """
[[transformer.step]]
kind = "mask"
columns = ["home"]
how = "hash"
salt_file = "salt"
"""
SALT = "of the driver alone"
STOP_SECONDS = 120.0
TERMINATED = 128 + signal.SIGTERM  # Java's own status
KAFKA = "confluent_kafka"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("archive") / "transformer.tar.gz"
    write_archive(target, "transformer")
    return target


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    with SparkCluster(workers=2) as running:
        yield running


def submitted(scene: Scene, cluster: SparkCluster, archive: Path, folder: Path) -> SubmittedJob:
    settings: dict[str, Setting] = {
        "kafka.bootstrap_servers": scene.bootstrap,
        "registry.url": scene.registry,
        "transformer.group_id": scene.prefix,
        "transformer.file": scene.file,
        "transformer.chunk_max_messages": 25,
        "transformer.operations_port": 0,
    }
    return SubmittedJob(cluster.url, archive, folder=folder, settings=settings, main=TRANSFORMER)


def test_executors_and_workers_that_die_lose_and_double_nothing(
    scene: Scene, cluster: SparkCluster, archive: Path, tmp_path: Path
) -> None:
    """A chain of two transformers, started from a backlog; SIGTERM ends it, and another job goes on."""
    scene.write_file(second=SECOND_STEPS)
    scene.send(range(300))
    job = submitted(scene, cluster, archive, tmp_path / "first")
    first, second = cluster.workers
    job.start()
    try:
        wait_for(scene, 300)
        for worker in (first, second):
            check_is_of_archive(partial(python_workers, worker), KAFKA)
        [executor] = executors(first)
        os.kill(executor, signal.SIGKILL)
        scene.send(range(300, 600))
        wait_for(scene, 600)
        second.kill()  # with its executor
        scene.send(range(600, 900))
        wait_for(scene, 900)
        second.start()
        job.check()
        process = job.process
        assert process is not None
        process.send(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == TERMINATED
        assert "Traceback" not in job.output()
        assert "error CDC" not in job.output()
    finally:
        job.stop(STOP_SECONDS)
    scene.send(range(900, 1000))
    again = submitted(scene, cluster, archive, tmp_path / "again")
    again.start()
    try:
        wait_for(scene, 1000)
    finally:
        again.stop(STOP_SECONDS)
    for number, target in enumerate(scene.targets):
        assert scene.received(target) == scene.expected(range(1000), is_second=number == 1)


def test_salts_travel_with_the_tasks(scene: Scene, cluster: SparkCluster, archive: Path, tmp_path: Path) -> None:
    """The executors' machines have neither the transformers file nor the salt's, and no log has it."""
    (scene.folder / "salt").write_text(SALT)
    scene.write_file(STEPS + HASH)
    scene.send(range(20))
    job = submitted(scene, cluster, archive, tmp_path / "submitted")
    job.start()
    try:
        wait_until(lambda: count(scene, scene.targets[0]) == 20, "the messages", WAIT_SECONDS)
    finally:
        job.stop(STOP_SECONDS)
    rows = [row for part in scene.received(scene.targets[0]).values() for _, row in part if row is not None]
    [hashed] = {row["home"] for row in rows}
    assert len(hashed) == 64
    assert SALT not in job.output()
    logs = [file for worker in cluster.workers for file in worker.work_directory.glob("app-*/*/std*")]
    assert logs
    assert not [file for file in logs if SALT in file.read_text(errors="replace")]


def count(scene: Scene, target: str) -> int:
    return sum(map(len, scene.received(target).values()))


def wait_for(scene: Scene, messages: int) -> None:
    """Wait for so many messages at the end of the chain."""
    wait_until(lambda: count(scene, scene.targets[1]) >= messages, f"{messages} messages", WAIT_SECONDS)
