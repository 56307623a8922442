"""`make verify WHAT=compose`: what README's section on Docker shows, in the time that it takes.

The containers start with deploy/compose, a table of one's own is made, its change comes out, is archived, loaded into
the warehouse and joined, and after a restart the next one comes out too. Each of the commands is the README's, except
that images are built before.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from confluent_kafka import Consumer

from cdc_common.errors.codes import CdcError, Code
from cdc_common.program.cli import reported_errors
from dev.local_stack.process.paths import local_folder, project_root
from dev.local_stack.process.processes import ChildProcess, wait_until
from dev.verify.containers.bases import ensure_cassandra, ensure_kafka, ensure_python
from dev.verify.containers.engine import Engine, install_missing
from dev.verify.containers.images import build
from dev.verify.containers.shop import JOINED
from tests.support.e2e.one_change import wait_for_text

if TYPE_CHECKING:
    from collections.abc import Callable

FILE = "deploy/compose/compose.yaml"
TARGETS = ("publisher", "filler", "schematizer", "materializer", "archive", "warehouse", "joinery")
SERVICES = 6
FIRST_CHANGE_SECONDS = 180.0
UP_SECONDS = 600.0
PROFILES = ("archive", "warehouse", "joinery")
ALL = tuple(part for profile in PROFILES for part in ("--profile", profile))
CUSTOMERS = """
CREATE TABLE shop.customers (id int PRIMARY KEY, name text) WITH cdc = true;
INSERT INTO shop.customers (id, name) VALUES (1, 'Ada')"""
READ_WAREHOUSE = (
    "import duckdb; print(duckdb.connect('/var/lib/cassandra-warehouse/warehouse.duckdb', read_only=True)"
    ".execute('SELECT note FROM shop.orders').fetchall())"
)
KAFKA = {"bootstrap.servers": "127.0.0.1:29092"}
README = (project_root() / "README.md").read_text().partition("### With Docker")[2]
STATEMENTS = re.findall(r"```sql\n(.*?);\n```", README, re.DOTALL)[0]  # cqlsh -e ends the last by itself
CONSUMER = re.findall(r"^python (docs/examples/consumer\.py .*)$", README, re.MULTILINE)[0].split()


class Compose:
    """`docker compose` on an engine, with the file of deploy/compose."""

    def __init__(self, engine: Engine) -> None:
        self._environment = {**engine.environment, "COMPOSE_DOCKER_CLI_BUILD": "1"}
        self._client = self._find()

    def run(self, *arguments: str) -> str:
        """Return the output of `docker compose ARGUMENTS`. CdcError SERVER_FAILED."""
        done = self._try(*self._client, "-f", FILE, *arguments)
        if done.returncode:
            raise CdcError(
                Code.SERVER_FAILED,
                f"docker compose {' '.join(arguments)} failed: {(done.stderr or done.stdout).strip()[-2000:]}.",
                "See its containers' logs.",
            )
        return done.stdout

    def cqlsh(self, statement: str) -> str:
        """Return what cqlsh in Cassandra's container prints."""
        return self.run("exec", "-T", "cassandra", "cqlsh", "-e", statement)

    def files(self) -> str:
        """The paths of the archive's files."""
        find = ("find", "/var/lib/cassandra-archive", "-path", "*/lake/*.parquet")
        return self.run(*ALL, "exec", "-T", "archive", *find)

    def notes(self) -> str:
        """The notes in the warehouse's table; empty before its first load, and while the job has the file open."""
        command = ("exec", "-T", "warehouse", "python", "-c", READ_WAREHOUSE)
        return self._try(*self._client, "-f", FILE, *ALL, *command).stdout

    def states(self) -> list[str]:
        """The state of each service's container, such as `running healthy`."""
        ids = self.run(*ALL, "ps", "-q").split()
        template = "{{.State.Status}} {{.State.Health.Status}}"
        return [self._try("docker", "inspect", "--format", template, one).stdout.strip() for one in ids]

    def _find(self) -> tuple[str, ...]:
        """Compose as a plugin of the client, or Debian's program."""
        if self._try("docker", "compose", "version").returncode == 0:
            return ("docker", "compose")
        install_missing({"docker-compose": "docker-compose"}, "There is no Docker Compose.")
        return ("docker-compose",)

    def _try(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd=project_root(),
            env=self._environment,
            timeout=UP_SECONDS,
        )


def _report(began: float, what: str) -> None:
    click.echo(f"{what}: {time.monotonic() - began:.0f} s")


def _try_it(compose: Compose) -> bool:
    """Start it, write a row, see its change, restart it, and see the next. Return whether the first came in time."""
    began = time.monotonic()
    compose.run("up", "-d")
    _report(began, "up")
    compose.cqlsh(STATEMENTS)
    _wait_for_the_consumer()
    in_time = time.monotonic() - began < FIRST_CHANGE_SECONDS
    _report(began, "first change")
    wait_until(lambda: compose.states() == ["running healthy"] * SERVICES, "all to be healthy", UP_SECONDS)
    _report(began, "all are healthy")
    compose.cqlsh(CUSTOMERS)
    outcomes: dict[str, Callable[[], bool]] = {
        "archive": lambda: "orders" in compose.files(),
        "warehouse": lambda: "hello" in compose.notes(),
        "joinery": partial(_is_joined, "Ada"),
    }
    for profile, has_come in outcomes.items():
        began = time.monotonic()
        compose.run("--profile", profile, "up", "-d")
        wait_until(has_come, f"the change to come out of {profile}", UP_SECONDS)
        _report(began, f"{profile} has the change")
    count = SERVICES + len(PROFILES)
    wait_until(lambda: compose.states() == ["running healthy"] * count, "all to be healthy", UP_SECONDS)
    began = time.monotonic()
    compose.run(*ALL, "stop")
    _report(began, "stop")
    began = time.monotonic()
    compose.run("up", "-d")
    wait_until(lambda: _answers(compose), "Cassandra after the restart", UP_SECONDS)
    compose.cqlsh("INSERT INTO shop.orders (id, note) VALUES (2, 'after the restart')")
    wait_for_text("cdc.shop.orders", KAFKA, "after the restart")
    _report(began, "first change after the restart")
    return in_time


def _is_joined(name: str) -> bool:
    """Whether a joined row with the customer's name has come out."""
    reader = Consumer({**KAFKA, "group.id": "joined", "auto.offset.reset": "earliest", "enable.auto.commit": False})
    reader.subscribe([JOINED])
    try:
        messages = reader.consume(10, 10.0)
        return any(message.error() is None and name.encode() in (message.value() or b"") for message in messages)
    finally:
        reader.close()


def _wait_for_the_consumer() -> None:
    """Run README's consumer until it has printed the change."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "consumer.log"
        process = ChildProcess("consumer.py", [sys.executable, *CONSUMER], log=log, cwd=project_root())
        try:
            process.wait_ready(lambda: "'note': 'hello'" in process.output(), "it had printed a change", UP_SECONDS)
        finally:
            process.kill()


def _answers(compose: Compose) -> bool:
    try:
        compose.cqlsh("SELECT release_version FROM system.local")
    except CdcError:
        return False
    return True


@click.command(help=__doc__)
def main() -> None:
    with reported_errors(), ExitStack() as stack:
        engine = stack.enter_context(Engine(local_folder() / "engine"))
        for ensure in (ensure_python, ensure_cassandra, ensure_kafka):
            ensure(engine)
        for target in TARGETS:
            build(engine, target)
        compose = Compose(engine)
        stack.callback(compose.run, *ALL, "down", "--volumes")
        try:
            is_in_time = _try_it(compose)
        except CdcError:
            click.echo(compose.run(*ALL, "logs", "--tail", "40"), err=True)
            raise
        if not is_in_time:
            click.secho(f"The first change took longer than {FIRST_CHANGE_SECONDS:.0f} s", fg="red", err=True)
            sys.exit(1)


if __name__ == "__main__":
    main()
