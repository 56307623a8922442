"""`make verify WHAT=containers`: build each image, run it confined beside real servers, and stop it in time.

Where no Docker engine answers, Debian's is installed and started in .local/engine, which keeps what is built for the
next run. Cassandra and Kafka run as child processes: the containers share cdc_raw and the host's network.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import click
from cassandra.cluster import Cluster

from cdc_common.errors.codes import CdcError
from cdc_common.program.cli import reported_errors
from dev.local_stack.process.folders import ServerFolder
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.process.paths import local_folder
from dev.local_stack.servers.cassandra import CassandraCluster
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.kafka import KafkaBroker
from dev.verify.containers.bases import ensure_python, ensure_spark
from dev.verify.containers.container import SHOWN, Container
from dev.verify.containers.engine import Engine
from dev.verify.containers.images import TARGETS, build, faults, image_of
from dev.verify.containers.shop import (
    CHANGES,
    COPIES,
    JOINED,
    JOINS,
    TRANSFORMERS,
    insert,
    make_tables,
    wait_for_change,
    wait_for_file,
    wait_for_row,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from dev.local_stack.servers.programs import Setting

JOBS = ("materializer", "transformer", "archive", "warehouse", "joinery")
STOP_SECONDS = {"publisher": 10, "filler": 10, "schematizer": 10} | dict.fromkeys(JOBS, 120)
"""The grace of `docker stop`: its default, and what the pages say of Spark jobs."""
ASK_REGISTRY = "import urllib.request as u; print(u.urlopen('http://schematizer:8081/subjects').read().decode())"
MIB = 1 << 20
FIRST, SECOND = "from a container", "while all were stopped"


class Run:
    """The servers, and the containers beside them."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self._folder = folder
        self.wrong: list[str] = []

    def build_all(self) -> None:
        """Build and look at each image."""
        for target in (*TARGETS, "spark"):
            began = time.monotonic()
            build(self._engine, target)
            size = self._engine.size(image_of(target)) / MIB
            click.echo(f"{image_of(target)}: built in {time.monotonic() - began:.0f} s, {size:.0f} MiB")
            self.wrong += [f"{target}: {fault}" for fault in faults(self._engine, target)]

    def check_bridge(self) -> None:
        """Another container reaches the registry by its name."""
        network = f"cdc-{os.getpid()}"
        self._engine.docker("network", "create", network)
        state = self._state("bridge")
        open_to_all = {"schematizer.open_reads": True, "schematizer.open_writes": True}
        registry = Container(
            self._engine,
            "schematizer",
            {**open_to_all, "schematizer.database_url": f"sqlite:///{state}/r.db"},
            folders=[state],
            network=network,
        )
        try:
            registry.start()
            command = ("--entrypoint", "python", image_of("schematizer"), "-c", ASK_REGISTRY)
            answer = self._engine.docker("run", "--rm", "--network", network, *command)
            click.echo(f"registry, asked by another container: {answer}")
        finally:
            registry.remove()
            self._engine.docker("network", "rm", network)

    def check_all(self) -> None:
        """A row written by CQL comes out of the materializer and of each job that reads its topic, one after the other.
        Each container then stops in time. What is written while all are stopped comes out after the next start.
        """
        options = CassandraOptions(heap_mib=400, commitlog_sync_period_ms=100, commitlog_segment_mib=1)
        with ExitStack() as stack:
            kafka = stack.enter_context(KafkaBroker())
            cluster = stack.enter_context(CassandraCluster(options=options))
            [node] = cluster.nodes
            os.chown(node.cdc_raw, 999, 999)
            containers = self._containers(kafka, cluster)
            for container in containers.values():
                stack.callback(container.remove)
            try:
                self._pass_rows(kafka, cluster, containers)
            except CdcError:
                for target, container in containers.items():
                    click.echo(f"--- {target}\n{container.log()[-SHOWN:]}", err=True)
                raise

    def _pass_rows(self, kafka: KafkaBroker, cluster: CassandraCluster, containers: Mapping[str, Container]) -> None:
        servers = [containers[name] for name in ("schematizer", "publisher", "filler")]
        with Cluster(cluster.contact_points, port=cluster.port, connect_timeout=60) as driver:
            session = driver.connect()
            make_tables(session)
            for container in (*servers, containers["materializer"]):
                _start(container)
            insert(session, 1, FIRST)
            wait_for_change(kafka, CHANGES, FIRST)
            self._finish(containers["materializer"])
            for name, wait in self._outcomes(kafka).items():
                _start(containers[name])
                wait()
                self._finish(containers[name])
            for container in reversed(servers):
                self._finish(container)
            insert(session, 2, SECOND)
        for container in (*servers, containers["materializer"]):
            container.remove()
            _start(container)
        wait_for_change(kafka, CHANGES, SECOND)

    def _outcomes(self, kafka: KafkaBroker) -> dict[str, Callable[[], None]]:
        """Return what is waited for after the start of each job that reads the materializer's topic."""
        return {
            "transformer": partial(wait_for_change, kafka, COPIES, FIRST),
            "archive": partial(wait_for_file, self._folder / "archive" / "lake"),
            "warehouse": partial(wait_for_row, self._folder / "warehouse" / "warehouse.duckdb", FIRST),
            "joinery": partial(wait_for_change, kafka, JOINED, FIRST),
        }

    def _containers(self, kafka: KafkaBroker, cluster: CassandraCluster) -> dict[str, Container]:
        """The container of each target; none has started. The filler has its settings in a file."""
        [node], [port] = cluster.nodes, free_ports(1)
        joined: dict[str, Setting] = {
            "cassandra.contact_points": node.address,
            "cassandra.port": cluster.port,
            "kafka.bootstrap_servers": kafka.bootstrap_servers,
            "kafka.raw_partitions": 1,
            "registry.url": f"http://{LOCALHOST}:{port}",
            "node.cdc_raw_directory": node.cdc_raw,
        }
        state = {target: self._state(target) for target in TARGETS}
        (state["transformer"] / "transformers.toml").write_text(TRANSFORMERS)
        (state["joinery"] / "joins.toml").write_text(JOINS)
        own: dict[str, dict[str, Setting]] = {
            "schematizer": {
                "schematizer.host": LOCALHOST,
                "schematizer.port": port,
                "schematizer.database_url": f"sqlite:///{state['schematizer']}/registry.db",
            },
            "publisher": {"publisher.state_directory": state["publisher"]},
            "materializer": {
                "materializer.checkpoint_location": state["materializer"] / "checkpoint",
                "materializer.state_directory": state["materializer"] / "state",
            },
            "transformer": {"transformer.file": state["transformer"] / "transformers.toml"},
            "archive": {
                "archive.topics": CHANGES,
                "archive.location": state["archive"] / "lake",
                "archive.spool_directory": state["archive"] / "spool",
                "archive.cut_seconds": 2,
            },
            "warehouse": {
                "warehouse.topics": CHANGES,
                "warehouse.target": f"duckdb:///{state['warehouse']}/warehouse.duckdb",
                "warehouse.spark_master": "local[1]",  # one process has the file open
            },
            "joinery": {
                "joinery.file": state["joinery"] / "joins.toml",
                "joinery.checkpoint_location": state["joinery"] / "checkpoint",
                "joinery.state_directory": state["joinery"] / "state",
            },
        }
        beside = {"publisher": [node.cdc_raw]}
        made = {
            target: Container(
                self._engine, target, {**joined, **settings}, folders=[state[target], *beside.get(target, [])]
            )
            for target, settings in own.items()
        }
        made["filler"] = Container(
            self._engine,
            "filler",
            {**joined, "filler.max_segment_age_seconds": 10},
            folders=[node.cdc_raw],
            file_folder=state["filler"],
        )
        return made

    def _finish(self, container: Container) -> None:
        container.wait_healthy()
        grace = STOP_SECONDS[container.target]
        seconds, status = container.stop(grace)
        click.echo(f"{container.target}: healthy; stopped in {seconds:.1f} s of {grace}, exit status {status}")
        if status:
            self.wrong.append(f"{container.target}: exit status {status}, with\n{container.log()[-SHOWN:]}")
        if others := container.lines_without_json():
            self.wrong.append(f"{container.target}: {len(others)} lines of its log are no JSON, such as {others[0]}")

    def _state(self, name: str) -> Path:
        """A folder that the image's user owns."""
        folder = self._folder / name
        folder.mkdir()
        os.chown(folder, 999, 999)
        return folder


def _start(container: Container) -> None:
    began = time.monotonic()
    container.start()
    click.echo(f"{container.target}: ready after {time.monotonic() - began:.0f} s")


@click.command(help=__doc__)
def main() -> None:
    with reported_errors(), ExitStack() as stack:
        folder = ServerFolder("containers")
        stack.callback(folder.close)
        engine = stack.enter_context(Engine(local_folder() / "engine"))
        ensure_python(engine)
        ensure_spark(engine)
        run = Run(engine, folder.path)
        run.build_all()
        run.check_bridge()
        run.check_all()
        for wrong in run.wrong:
            click.secho(wrong, fg="red", err=True)
        sys.exit(1 if run.wrong else 0)


if __name__ == "__main__":
    main()
