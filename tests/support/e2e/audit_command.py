"""`cassandra-materializer audit` in a process of its own, beside the job of a running stack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from dev.local_stack.servers.programs import environment_of

if TYPE_CHECKING:
    from dev.local_stack.servers.stack import Stack


class Audited(NamedTuple):
    """The exit status, what was printed as JSON, and the progress."""

    status: int
    found: list[dict[str, Any]]
    progress: str

    def of(self, type_: str) -> list[dict[str, Any]]:
        return [finding for finding in self.found if finding["type"] == type_]


class RunningAudit:
    """The command. What it prints goes to files, which nothing has to read while it runs."""

    def __init__(self, stack: Stack, table: str, *arguments: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CDC_")}
        settings = {
            **stack.materializer.settings,
            "materializer.spark_master": "local[2]",
            "cassandra.contact_points": ",".join(stack.servers.cassandra_hosts),
            "cassandra.port": stack.servers.cassandra_port,
        }
        self._printed = TemporaryFile()  # noqa: SIM115 - read and closed once the command is over
        self._progress = TemporaryFile()  # noqa: SIM115 - as above
        self._process = subprocess.Popen(
            [sys.executable, "-m", "materializer", "audit", table, "--json", *arguments],
            env={**kept, **stack.materializer.environment, **environment_of(settings)},
            stdout=self._printed,
            stderr=self._progress,
        )

    def wait(self, seconds: float = 900) -> Audited:
        """AssertionError with what it printed, for an exit status that no audit has, and after that time: it is killed
        then.
        """
        status: int | None = None
        with suppress(subprocess.TimeoutExpired):
            status = self._process.wait(seconds)
        self.kill()
        printed, progress = (_text(file) for file in (self._printed, self._progress))
        assert status is not None, f"the audit is not over after {seconds} s: {printed}{progress}"
        assert status in {0, 1, 2}, printed + progress
        return Audited(status, [json.loads(line) for line in printed.splitlines()], progress)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _text(file: IO[bytes]) -> str:
    with file:
        file.seek(0)
        return file.read().decode()


def audit(stack: Stack, table: str, *arguments: str) -> Audited:
    """Return the findings of an audit, once it is over. Errors as RunningAudit.wait."""
    return RunningAudit(stack, table, *arguments).wait()
