"""Transformers on a real broker and a real registry, in Spark and without."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from cdc_common.errors.codes import Code
from dev.local_stack.servers.programs import spark_environment
from tests.support.materializer.protocol_run import ROOT
from tests.support.transformer.scene import SECOND_STEPS, STEPS, Scene
from transformer.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable


pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

WAIT_SECONDS = 180.0


class Job:
    """The job in Spark, as it is run."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.output = scene.folder / "output"
        settings = {
            "kafka.bootstrap_servers": scene.bootstrap,
            "registry.url": scene.registry,
            "transformer.group_id": scene.prefix,
            "transformer.spark_master": "local[2]",
            "transformer.operations_port": 0,
            "log.format": "json",
        }
        flags = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
        command = [sys.executable, "-m", "transformer", "run", *flags, str(scene.file)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **spark_environment(scene.folder)}
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            assert self.process.poll() is None, self.output.read_text()
            assert time.monotonic() < deadline, self.output.read_text()
            time.sleep(0.5)

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(WAIT_SECONDS) == 0, self.output.read_text()


def test_check_asks_the_registry_for_the_schema_of_each_source(scene: Scene) -> None:
    command = ["check", str(scene.file), "--set", f"registry.url={scene.registry}"]
    done = CliRunner().invoke(main, command)
    assert (done.exit_code, done.output) == (0, "ok\n")
    scene.write_file(STEPS.replace('"email"', '"nothing"'))
    refused = CliRunner().invoke(main, command)
    assert refused.exit_code == Code.TRANSFORM_STEP.exit_status
    assert "CDC-096" in refused.stderr


def test_a_chain_in_spark(scene: Scene) -> None:
    scene.write_file(second=SECOND_STEPS)
    scene.send(range(100))
    job = Job(scene)
    try:
        expected = scene.expected(range(200), is_second=True)
        job.wait_for(lambda: '"ready"' in job.output.read_text())
        scene.send(range(100, 200))
        job.wait_for(lambda: scene.received(scene.targets[1]) == expected)
        assert scene.received(scene.targets[0]) == scene.expected(range(200))
        job.stop()
    finally:
        job.process.kill()
