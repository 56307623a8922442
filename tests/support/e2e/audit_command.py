"""`cassandra-materializer audit` in a process of its own, beside the job of a running stack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from local_stack.servers.programs import environment_of

if TYPE_CHECKING:
    from local_stack.servers.stack import Stack


class Audited(NamedTuple):
    """The exit status, what was printed as JSON, and the progress."""

    status: int
    found: list[dict[str, Any]]
    progress: str

    def of(self, type_: str) -> list[dict[str, Any]]:
        return [each for each in self.found if each["type"] == type_]


def audit(stack: Stack, table: str, *arguments: str, seconds: float = 400) -> Audited:
    """AssertionError for an exit status that no audit has."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CDC_")}
    settings = {
        **stack.materializer.settings,
        "materializer.spark_master": "local[2]",
        "cassandra.contact_points": ",".join(stack.servers.cassandra_hosts),
        "cassandra.port": stack.servers.cassandra_port,
    }
    done = subprocess.run(
        [sys.executable, "-m", "materializer", "audit", table, "--json", *arguments],
        env={**kept, **stack.materializer.environment, **environment_of(settings)},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode in {0, 1, 2}, done.stdout + done.stderr
    return Audited(done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr)
