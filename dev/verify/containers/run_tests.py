"""`make verify WHAT=container-tests`: tests on Cassandra and Kafka in containers of their official images.

TESTS takes other files than those that are run by default; each must start its servers by the fixtures or
dev.local_stack.servers.choice. Tests that damage a server's files or processes start child processes, also here.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import click

from cdc_common.program.cli import reported_errors
from dev.local_stack.process.paths import local_folder, project_root
from dev.verify.containers.bases import ensure_cassandra, ensure_kafka
from dev.verify.containers.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Sequence

TESTS = (
    *("tests/servers/publisher/test_messages.py", "tests/servers/publisher/test_quarantine.py"),
    "tests/servers/transformer/test_transformers.py",
)


def run_tests(engine: Engine, tests: Sequence[str]) -> int:
    """Run pytest with SERVERS=containers on the engine. Return its status."""
    environment = {**engine.environment, "SERVERS": "containers"}
    if engine.is_ours:
        environment["TESTCONTAINERS_RYUK_DISABLED"] = "true"  # its image cannot be pulled, and the engine ends with us
    command = [sys.executable, "-m", "pytest", "-v", "-n", "0", *tests]
    return subprocess.run(command, check=False, cwd=project_root(), env=environment).returncode


@click.command(help=__doc__)
@click.option("--tests", default=" ".join(TESTS), help="Files of tests, and other arguments of pytest.")
def main(tests: str) -> None:
    with reported_errors(), Engine(local_folder() / "engine") as engine:
        ensure_cassandra(engine)
        ensure_kafka(engine)
        sys.exit(run_tests(engine, shlex.split(tests)))


if __name__ == "__main__":
    main()
