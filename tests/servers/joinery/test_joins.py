"""Joins on a real broker and a real registry, in Spark and without: equal to DuckDB's join, whatever fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import Code
from cdc_common.messages.avro.encoding import VALUE, encode_long
from cdc_common.messages.topics import partition_for
from dev.local_stack.servers.programs import spark_environment
from stream_runtime import fault_points
from stream_runtime.fault_points import Fault, FaultPoint, Point, StatelessPoint
from tests.support.joinery.local_job import LocalJob
from tests.support.joinery.scene import TARGET_PARTITIONS, Row, Scene, random_rows
from tests.support.materializer.protocol_run import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

WAIT_SECONDS = 180.0
POINTS: list[Point] = [
    StatelessPoint.TASK_FENCED,
    StatelessPoint.TRANSFORMED,
    StatelessPoint.SOME_SENT,
    StatelessPoint.OFFSET_SENT,
    StatelessPoint.CHUNK_COMMITTED,
    FaultPoint.AFTER_INIT,
    FaultPoint.AFTER_ADOPT,
    FaultPoint.AFTER_FOLD,
    FaultPoint.IN_PRODUCE,
    FaultPoint.AFTER_CHANGELOG,
    FaultPoint.AFTER_SEND_OFFSETS,
    FaultPoint.AFTER_COMMIT,
    FaultPoint.AFTER_APPLY,
]


def test_the_target_equals_the_sql_join(scene: Scene) -> None:
    random = Random(1)
    with LocalJob(scene) as job:
        for _ in range(2):
            scene.send(random_rows(random, 150))
            job.run_until(lambda: scene.joined() == scene.by_sql())
        assert job.errors == {}
    scene.send(random_rows(random, 50))
    with LocalJob(scene) as job:  # it continues from the committed positions
        job.run_until(lambda: scene.joined() == scene.by_sql())
        assert job.errors == {}


def test_a_limit_stops_one_key(scene: Scene) -> None:
    """A user with more orders than the limit stops its partition alone. Raised, the limit lets it continue."""
    hot = 7
    scene.write_file(most_rows=5)
    scene.send(order(number, hot) for number in range(6))
    scene.send(order(10 + number, number) for number in range(6))
    with LocalJob(scene) as job:
        job.run_until(lambda: len(scene.joined()) == 12)
        scene.send(user(number) for number in (hot, *range(6)))
        elsewhere = {number for number in range(6) if partition_of_key(number) != partition_of_key(hot)}
        job.run_until(lambda: bool(job.errors) and elsewhere <= named(scene))
        (error,) = job.errors.values()
    assert error.code is Code.JOIN_LIMIT
    assert "it changes 6 joined rows, and the limit is 5" in error.problem
    assert f"(SHA-256 {sha256(key_of(hot)).hexdigest()[:12]}…): 6 of o, 0 of u." in error.problem
    assert hot not in named(scene)
    scene.write_file(most_rows=6)
    with LocalJob(scene) as job:
        job.run_until(lambda: scene.joined() == scene.by_sql())
    assert job.errors == {}


def order(number: int, user_id: int) -> Row:
    return Row("orders", {"id": number, "user_id": user_id, "total": 1.0, "note": None})


def user(number: int) -> Row:
    return Row("users", {"id": number, "name": "Ada", "city": None})


def named(scene: Scene) -> set[int]:
    """The users that joined rows have a name of."""
    return {row[0] for row in scene.joined() if row[3] is not None}


def key_of(user_id: int) -> bytes:
    """The join key's Avro bytes."""
    return VALUE + encode_long(user_id)


def partition_of_key(user_id: int) -> int:
    return partition_for(key_of(user_id), TARGET_PARTITIONS)


@pytest.mark.exhaustive
@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_a_failure_at_each_fault_point(scene: Scene, point: Point, monkeypatch: pytest.MonkeyPatch) -> None:
    """The share fails there, and continues from its committed position."""
    scene.send(random_rows(Random(2), 100))
    fault_points.reached.clear()
    monkeypatch.setattr(fault_points, "armed", Fault(point, 1, "raise"))
    with LocalJob(scene) as job:
        job.run_until(lambda: fault_points.reached[point] > 0 and scene.joined() == scene.by_sql())
        scene.send(random_rows(Random(3), 100))
        job.run_until(lambda: scene.joined() == scene.by_sql())
    assert {error.code for error in job.errors.values()} <= {Code.UNEXPECTED}


@pytest.mark.exhaustive
def test_a_large_fan_out_comes_in_parts(scene: Scene) -> None:
    """Each transaction has room for a few joined rows only."""
    with LocalJob(scene, chunk_max_bytes=200) as job:
        scene.send(random_rows(Random(4), 200))
        job.run_until(lambda: scene.joined() == scene.by_sql(), 2 * WAIT_SECONDS)
    assert job.errors == {}


class Job:
    """The job in Spark, as it is run."""

    def __init__(self, scene: Scene, number: int) -> None:
        self._scene = scene
        self.output = scene.folder / f"output-{number}"
        settings = scene.settings()
        flags = {
            "kafka.bootstrap_servers": scene.bootstrap,
            "kafka.change_partitions": settings.kafka.change_partitions,
            "registry.url": settings.registry.url,
            "joinery.group_id": scene.prefix,
            "joinery.spark_master": "local[2]",
            "joinery.chunk_max_messages": 20,
            "joinery.checkpoint_location": settings.joinery.checkpoint_location,
            "joinery.state_directory": settings.joinery.state_directory,
            "joinery.operations_port": 0,
            "log.format": "json",
        }
        given = [part for name, value in flags.items() for part in ("--set", f"{name}={value}")]
        command = [sys.executable, "-m", "joinery", "run", *given, str(scene.file)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **spark_environment(scene.folder)}
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=output, stderr=output, start_new_session=True
            )

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            assert self.process.poll() is None, self.output.read_text()
            assert time.monotonic() < deadline, self.output.read_text()
            time.sleep(0.5)

    def kill(self) -> None:
        """Kill -9 the driver, Spark and its workers."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(WAIT_SECONDS) == 0, self.output.read_text()


def kill_at_work(scene: Scene, job: Job, random: Random) -> None:
    try:
        job.wait_for(lambda: '"ready"' in job.output.read_text())
        scene.send(random_rows(random, 300))
        job.wait_for(lambda: bool(scene.joined()))
    finally:
        job.kill()


@pytest.mark.exhaustive
def test_spark_is_killed(scene: Scene) -> None:
    random = Random(5)
    scene.send(random_rows(random, 300))
    for number in range(2):
        kill_at_work(scene, Job(scene, number), random)
    job = Job(scene, 2)
    try:
        scene.send(random_rows(random, 100))
        job.wait_for(lambda: scene.joined() == scene.by_sql())
        job.stop()
    finally:
        if job.process.poll() is None:
            job.kill()
