"""`make verify WHAT=containers`: build each image, run it confined beside real servers, and stop it in time.

Last, the driver of the image `spark` takes the place of the materializer's container, and goes on with its state.
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
    notes_of_changes,
    wait_for_change,
    wait_for_file,
    wait_for_row,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from cassandra.cluster import Session

    from dev.local_stack.servers.programs import Setting

JOBS = ("materializer", "transformer", "archive", "warehouse", "joinery")
STOP_SECONDS = {"publisher": 10, "filler": 10, "schematizer": 10} | dict.fromkeys(JOBS, 120)
"""The grace of `docker stop`: its default, and what the pages say of Spark jobs."""
ASK_REGISTRY = "import urllib.request as u; print(u.urlopen('http://schematizer:8081/subjects').read().decode())"
MIB = 1 << 20
FIRST, SECOND, THIRD, FOURTH = "from a container", "while all were stopped", "from a driver", "while it was stopped"
SPARK = "spark"
MAIN_FILES = "/opt/cassandra-cdc"
WORK = "/opt/spark/work-dir"  # a volume of its own in Kubernetes, too
DRIVER = ("driver", "--master", "local[2]", "--conf", f"spark.driver.host={LOCALHOST}")
DRIVER_SECONDS = 120  # the grace of the manifests
DRIVER_STATUS = 143
"""Java's own status after SIGTERM, also where the JVM's hook has waited for the driver to end its batch."""
ENDS = "spark jvm is shutting down"  # what the driver logs then


class Run:
    """The servers, and the containers beside them."""

    def __init__(self, engine: Engine, folder: Path, jobs: Collection[str]) -> None:
        self._engine = engine
        self._folder = folder
        self._jobs = jobs
        self._registry = ""
        self.wrong: list[str] = []

    def build_all(self) -> None:
        """Build and look at each image."""
        for target in (*(name for name in TARGETS if name not in JOBS or name in self._jobs), SPARK):
            began = time.monotonic()
            build(self._engine, target)
            size = self._engine.size(image_of(target)) / MIB
            click.echo(f"{image_of(target)}: built in {time.monotonic() - began:.0f} s, {size:.0f} MiB")
            self.wrong += [f"{target}: {fault}" for fault in faults(self._engine, target)]

    def check_main_files(self) -> None:
        """Each main file of the image `spark` imports its job."""
        files = self._engine.docker("run", "--rm", "--entrypoint", "ls", image_of(SPARK), MAIN_FILES).split()
        for file in files:
            command = ("--entrypoint", "python", image_of(SPARK), f"{MAIN_FILES}/{file}", "run", "--help")
            done = self._engine.try_docker("run", "--rm", "--network", "none", *command)
            if done.returncode or "Usage:" not in done.stdout:
                self.wrong.append(f"{SPARK}: {file} does not start: {done.stderr[-SHOWN:]}")
        click.echo(f"{SPARK}: main files that start: {', '.join(files)}")

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
            self._finish(containers["materializer"])
            self._drive(kafka, containers[SPARK], session)

    def _drive(self, kafka: KafkaBroker, driver: Container, session: Session) -> None:
        """The driver under spark-submit folds what comes, ends its batch at SIGTERM, and the next one goes on."""
        _start(driver)
        insert(session, 3, THIRD)
        wait_for_change(kafka, CHANGES, THIRD)
        self._stop_driver(driver)
        insert(session, 4, FOURTH)
        driver.remove()
        _start(driver)
        wait_for_change(kafka, CHANGES, FOURTH)
        self._stop_driver(driver)
        found = notes_of_changes(kafka, self._registry)
        if sorted(found) != sorted((FIRST, SECOND, THIRD, FOURTH)):
            self.wrong.append(f"{CHANGES} has the changes {found}")
        click.echo(f"{CHANGES}: {len(found)} changes in all")

    def _stop_driver(self, driver: Container) -> None:
        seconds, status = driver.stop(DRIVER_SECONDS)
        click.echo(f"{driver.target}: stopped in {seconds:.1f} s of {DRIVER_SECONDS}, exit status {status}")
        if status != DRIVER_STATUS or ENDS not in driver.log():
            self.wrong.append(f"{driver.target}: exit status {status}, with\n{driver.log()[-SHOWN:]}")

    def _outcomes(self, kafka: KafkaBroker) -> dict[str, Callable[[], None]]:
        """Return what is waited for after the start of each job that reads the materializer's topic."""
        outcomes = {
            "transformer": partial(wait_for_change, kafka, COPIES, FIRST),
            "archive": partial(wait_for_file, self._folder / "archive" / "lake"),
            "warehouse": partial(wait_for_row, self._folder / "warehouse" / "warehouse.duckdb", FIRST),
            "joinery": partial(wait_for_change, kafka, JOINED, FIRST),
        }
        return {name: wait for name, wait in outcomes.items() if name in self._jobs}

    def _containers(self, kafka: KafkaBroker, cluster: CassandraCluster) -> dict[str, Container]:
        """The container of each target; none has started. The filler has its settings in a file."""
        [node], [port] = cluster.nodes, free_ports(1)
        self._registry = f"http://{LOCALHOST}:{port}"
        joined: dict[str, Setting] = {
            "cassandra.contact_points": node.address,
            "cassandra.port": cluster.port,
            "kafka.bootstrap_servers": kafka.bootstrap_servers,
            "kafka.raw_partitions": 1,
            "registry.url": self._registry,
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
        made[SPARK] = Container(
            self._engine,
            SPARK,
            {**joined, **own["materializer"]},
            folders=[state["materializer"]],
            command=(*DRIVER, f"local://{MAIN_FILES}/submit.py", "run"),
            options=(f"--env=SPARK_DRIVER_BIND_ADDRESS={LOCALHOST}", "--tmpfs", f"{WORK}:uid=999,gid=999"),
        )
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
@click.option("--jobs", default=" ".join(JOBS), help="The Spark jobs whose images are built and run.")
def main(jobs: str) -> None:
    with reported_errors(), ExitStack() as stack:
        folder = ServerFolder("containers")
        stack.callback(folder.close)
        engine = stack.enter_context(Engine(local_folder() / "engine"))
        ensure_python(engine)
        ensure_spark(engine)
        run = Run(engine, folder.path, {"materializer", *jobs.split()})
        run.build_all()
        run.check_main_files()
        run.check_bridge()
        run.check_all()
        for wrong in run.wrong:
            click.secho(wrong, fg="red", err=True)
        sys.exit(1 if run.wrong else 0)


if __name__ == "__main__":
    main()
