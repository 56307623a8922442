"""`make verify WHAT=units`: each unit of deploy/systemd on a host with systemd, from its start to its stop.

The host is a container whose first process is systemd. Root owns the installation, which is made by the commands of
docs/guides/install.md. Each program gets its settings from /etc/cdc.toml alone.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import click

from cdc_common.errors.codes import CdcError
from cdc_common.program.cli import reported_errors
from dev.local_stack.process.paths import local_folder, project_root
from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.programs import READY_LINE
from dev.verify.containers.engine import Engine
from dev.verify.containers.shop import CHANGES, COPIES, JOINED, JOINS, TRANSFORMERS, wait_for_change
from dev.verify.hosts.host import SHOWN, Host, build_host

if TYPE_CHECKING:
    from collections.abc import Callable

UNITS = project_root() / "deploy" / "systemd"
SERVERS = ("schematizer", "publisher", "filler")
JOBS = ("materializer", "transformer", "archive", "warehouse", "joinery")
FIRST, SECOND, THIRD = "from a unit", "while all were stopped", "after a kill"
STOPPED = ("success", "0")  # Result and ExecMainStatus of a unit that was stopped as it should
WAIT_SECONDS = 240.0
KAFKA_MAP = "listener.security.protocol.map=CLIENTS:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
CASSANDRA_YAML = """
cdc_enabled: true
cdc_raw_directory: /var/lib/cassandra/cdc_raw
cdc_total_space: 256MiB
commitlog_sync_period: 200ms
"""
SETTINGS = """
[cassandra]
contact_points = ["127.0.0.1"]
[kafka]
bootstrap_servers = "kafka1:9092"
raw_partitions = 1
change_partitions = 1
[registry]
url = "http://127.0.0.1:8081"
[transformer]
file = "/etc/transformers.toml"
[joinery]
file = "/etc/joins.toml"
[archive]
topics = 'cdc\\.shop\\..*'
cut_seconds = 2
[warehouse]
topics = 'cdc\\.shop\\.orders'
spark_master = "local[1]"
"""
TABLES = """
CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
CREATE TABLE shop.orders (id int PRIMARY KEY, note text) WITH cdc = true;
CREATE TABLE shop.customers (id int PRIMARY KEY, name text) WITH cdc = true;
INSERT INTO shop.customers (id, name) VALUES (1, 'Ada');
"""
READ_WAREHOUSE = (
    "import duckdb; print(duckdb.connect('/var/lib/cassandra-warehouse/warehouse.duckdb', read_only=True)"
    ".execute('SELECT note FROM shop.orders').fetchall())"
)


class Units:
    """The units of one host, beside its Cassandra and its Kafka."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.wrong: list[str] = []

    def install(self) -> None:
        """Install what an operator installs: the units, the settings, and the files that those name."""
        self._host.configure_cassandra(CASSANDRA_YAML)
        for unit in sorted(UNITS.glob("*.service")):
            self._host.copy(unit, f"/etc/systemd/system/{unit.name}")
        for path, text in {
            "/etc/cdc.toml": SETTINGS,
            "/etc/transformers.toml": TRANSFORMERS,
            "/etc/joins.toml": JOINS,
        }.items():
            self._host.write(path, text)
        self._host.run("systemctl daemon-reload")

    def check_all(self) -> None:
        """A change comes out of each job, each unit stops in time, and starts again after a kill."""
        host = self._host
        host.start_kafka(KAFKA_MAP)
        host.start_cassandra()
        self._cqlsh(TABLES)
        for name in (*SERVERS, "materializer"):
            self._start(name)
        self._insert(1, FIRST)
        self._wait(CHANGES, FIRST)
        for name, wait in self._outcomes().items():
            self._start(name)
            wait()
            self._stop(name)
        for name in ("materializer", *reversed(SERVERS)):
            self._stop(name)
        self._insert(2, SECOND)
        for name in (*SERVERS, "materializer"):
            self._start(name)
        self._wait(CHANGES, SECOND)
        for name in ("publisher", "materializer"):
            self._kill(name)
        self._insert(3, THIRD)
        self._wait(CHANGES, THIRD)
        for name in ("materializer", *reversed(SERVERS)):
            self._stop(name)

    def _outcomes(self) -> dict[str, Callable[[], None]]:
        """Return what is waited for after the start of each job that reads the materializer's topic."""
        return {
            "transformer": partial(self._wait, COPIES, FIRST),
            "archive": partial(self._wait_for, "find /var/lib/cassandra-archive -name '*.parquet'", ".parquet"),
            "warehouse": partial(self._wait_for, f'/opt/cassandra-cdc/bin/python -c "{READ_WAREHOUSE}"', FIRST),
            "joinery": partial(self._wait, JOINED, FIRST),
        }

    def _start(self, name: str) -> None:
        unit = f"cassandra-{name}"
        seconds = self._host.start_unit(unit, lambda: self._has_logged_ready(unit))
        user = self._host.run(f"ps -o user= -p {self._host.show(unit, 'MainPID')}").strip()
        click.echo(f"{unit}: ready after {seconds:.0f} s, as {user}")

    def _has_logged_ready(self, unit: str) -> bool:
        """Whether this start of the unit has logged it. CdcError SERVER_FAILED if it has ended."""
        command = f"journalctl --no-pager -o cat _SYSTEMD_INVOCATION_ID={self._host.show(unit, 'InvocationID')}"
        return READY_LINE in self._host.try_run(command).stdout

    def _stop(self, name: str) -> None:
        unit = f"cassandra-{name}"
        began = time.monotonic()
        self._host.run(f"systemctl stop {unit}")
        seconds = time.monotonic() - began
        outcome = (self._host.show(unit, "Result"), self._host.show(unit, "ExecMainStatus"))
        click.echo(f"{unit}: stopped in {seconds:.1f} s, result {outcome[0]}, exit status {outcome[1]}")
        if outcome != STOPPED:
            self.wrong.append(f"{unit}: {outcome}, with\n{self._host.journal(unit)[-SHOWN:]}")

    def _kill(self, name: str) -> None:
        """Kill all of its processes; systemd starts it again by itself."""
        unit = f"cassandra-{name}"
        before = self._host.show(unit, "InvocationID")
        self._host.run(f"systemctl kill --signal=KILL {unit}")
        began = time.monotonic()
        wait_until(
            lambda: self._host.show(unit, "InvocationID") not in {before, ""} and self._has_logged_ready(unit),
            f"{unit} to be started again",
            WAIT_SECONDS,
        )
        click.echo(f"{unit}: ready again {time.monotonic() - began:.0f} s after kill -9")

    def _cqlsh(self, statements: str) -> None:
        self._host.run(f"cqlsh <<'END'\n{statements}\nEND")

    def _insert(self, number: int, note: str) -> None:
        self._cqlsh(f"INSERT INTO shop.orders (id, note) VALUES ({number}, '{note}');")

    def _wait(self, topic: str, note: str) -> None:
        wait_for_change(self._host, topic, note)

    def _wait_for(self, command: str, text: str) -> None:
        wait_until(lambda: text in self._host.try_run(command).stdout, f"{text!r} from {command}", WAIT_SECONDS)
        click.echo(f"{text!r} is there")


@click.command(help=__doc__)
def main() -> None:
    with reported_errors(), ExitStack() as stack:
        engine = stack.enter_context(Engine(local_folder() / "engine"))
        image = build_host(engine, "installed")
        network = f"cdc-units-{os.getpid()}"
        engine.docker("network", "create", network)
        stack.callback(engine.docker, "network", "rm", network)
        host = Host(engine, image, network, "node1", ("kafka1",))
        stack.callback(host.remove)
        host.start()
        units = Units(host)
        try:
            units.install()
            units.check_all()
        except CdcError:
            for name in (*SERVERS, *JOBS):
                click.echo(f"--- {name}\n{host.journal(f'cassandra-{name}')[-SHOWN:]}", err=True)
            raise
        for wrong in units.wrong:
            click.secho(wrong, fg="red", err=True)
        sys.exit(1 if units.wrong else 0)


if __name__ == "__main__":
    main()
