"""The archive's program in Spark, for tests: its command, and a run of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dev.local_stack.process.paths import project_root
from dev.local_stack.servers.programs import spark_environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from archive.settings import ArchiveSettings
    from tests.support.archive.archive_run import ArchiveSetup

STOP_SECONDS = 300.0


class ArchiveProgram:
    """`cassandra-archive` with some settings. folder: for Spark's files and the log."""

    def __init__(self, setup: ArchiveSetup, own: ArchiveSettings, folder: Path) -> None:
        flags = [f"--set=kafka.bootstrap_servers={setup.bootstrap}", f"--set=registry.url={setup.registry}"]
        flags += [
            f"--set=archive.{name}={','.join(value) if isinstance(value, list) else value}"
            for name, value in own.model_dump(exclude_defaults=True).items()
        ]
        flags.append("--set=archive.operations_port=0")
        self._command = [sys.executable, "-m", "archive", *flags]
        fixed = {"PYTHONPATH": str(project_root()), "CDC_LOG__FORMAT": "json"}
        self._environment = {**os.environ, **fixed, **spark_environment(folder)}
        self.log = folder / "log"

    def answer(self, *arguments: str) -> str:
        """Run a command. Return its output."""
        done = self._run(arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def failure(self, *arguments: str) -> str:
        """Run a command that fails. Return what it says."""
        done = self._run(arguments)
        assert done.returncode, done.stdout
        return done.stdout + done.stderr

    def _run(self, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *arguments],
            cwd=project_root(),
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """The job until the block ends; then it must stop with status 0."""
        with self.log.open("wb") as output:
            process = subprocess.Popen(
                [*self._command, "run"], cwd=project_root(), env=self._environment, stdout=output, stderr=output
            )
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(STOP_SECONDS) == 0, self.log.read_text()
        finally:
            process.kill()
