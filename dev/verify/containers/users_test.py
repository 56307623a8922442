"""`make verify WHAT=testcontainers`: the docs' example of a user's own test, on an engine with the programs' images."""

from __future__ import annotations

import subprocess
import sys
import time

import click

from cdc_common.program.cli import reported_errors
from dev.local_stack.process.paths import local_folder, project_root
from dev.verify.containers.bases import ensure_cassandra, ensure_kafka, ensure_python
from dev.verify.containers.engine import Engine
from dev.verify.containers.images import build

TARGETS = ("publisher", "filler", "schematizer", "materializer")
TEST = "docs/examples/test_orders.py"


@click.command(help=__doc__)
def main() -> None:
    with reported_errors(), Engine(local_folder() / "engine") as engine:
        for ensure in (ensure_python, ensure_cassandra, ensure_kafka):
            ensure(engine)
        for target in TARGETS:
            build(engine, target)
        environment = dict(engine.environment)
        if engine.is_ours:
            environment["TESTCONTAINERS_RYUK_DISABLED"] = "true"  # its image cannot be pulled
        began = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", TEST]
        status = subprocess.run(command, check=False, cwd=project_root(), env=environment).returncode
        click.echo(f"{TEST}: {time.monotonic() - began:.0f} s")
        sys.exit(status)


if __name__ == "__main__":
    main()
