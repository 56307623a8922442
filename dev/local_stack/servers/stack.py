"""Everything at once: Cassandra, Kafka, the registry and our programs as children, wired to each other."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Self

from dev.local_stack.process.folders import ServerFolder
from dev.local_stack.process.lifecycle import Managed
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.servers import programs
from dev.local_stack.servers.addresses import NodeAddress, Servers, remove_servers, write_servers
from dev.local_stack.servers.cassandra_options import OPTIMIZED, CassandraOptions
from dev.local_stack.servers.choice import cassandra_cluster, kafka_broker
from dev.local_stack.servers.programs import CHECKOUT
from dev.local_stack.servers.stack_settings import remove_settings, write_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cdc_common.messages.avro.type_forms import StaticRows
    from dev.local_stack.servers.cassandra import CassandraNode
    from dev.local_stack.servers.programs import Program, Release, Setting

TOPIC_PREFIX = "cdc"
SYNC_PERIOD_MS = 100
GIVE_UP_SECONDS = 10.0
# Little data, two cores: fewer partitions mean fewer tasks for each batch.
SETTINGS: Mapping[str, Setting] = {"kafka.raw_partitions": 2, "kafka.change_partitions": 2}
# Small cuts, so that what is written can soon be queried; one process, because it has little to do.
ARCHIVE_SETTINGS: Mapping[str, Setting] = {"archive.cut_seconds": 3, "archive.spark_master": "local[1]"}
# Many servers share one machine: its load and its disk say nothing about the node.
OF_A_SHARED_MACHINE: Mapping[str, Setting] = {
    "publisher.snapshot_busy_load_per_core": 0,
    "publisher.snapshot_min_free_percent": 0,
}


class Stack(Managed):
    """Run all servers and programs as a context. `.run/servers.json` has their addresses, and tests can make each of
    them fail.

    Cassandra syncs its commit log every 100 ms, where a stock one does every 10 s. `settings` (`table.key`) are laid
    over the programs', which run from `release`. static_rows: of the materializer; included, tests see all that SELECT
    shows. archived: the topics that the archive keeps; without it, no archive runs. Raises CdcError; logs are kept when
    an exception ends it.
    """

    def __init__(  # noqa: PLR0913 - settings by keyword
        self,
        *,
        version: str = "5.0",
        datacenters: Mapping[str, int] | None = None,
        options: CassandraOptions | None = None,
        settings: Mapping[str, Setting] | None = None,
        static_rows: StaticRows = "include",
        archived: str = "",
        release: Release = CHECKOUT,
        report: Callable[[str], None] = print,
    ) -> None:
        self._report = report
        self._release = release
        self._folder = ServerFolder("stack")
        self._settings = {**SETTINGS, "materializer.static_rows": static_rows, **(settings or {})}
        chosen = options or CassandraOptions(commitlog_sync_period_ms=SYNC_PERIOD_MS)
        self.cassandra = cassandra_cluster(version, datacenters=datacenters, options=chosen, report=report)
        self.kafka = kafka_broker(report=report)
        self.kafka.is_optimized = OPTIMIZED[0] in chosen.jvm_options
        self._registry_port = free_ports(1)[0]
        self.schematizer = programs.schematizer(
            self._folder.path, self._registry_port, {"kafka.bootstrap_servers": self.kafka.bootstrap_servers}
        )
        self.schematizer.release = release
        self.publishers: list[Program] = []
        self.fillers: list[Program] = []
        self._archived = archived
        self._materializer: Program | None = None
        self._archive: Program | None = None
        self._threads: list[threading.Thread] = []
        self._has_kafka = threading.Event()

    @property
    def servers(self) -> Servers:
        """The addresses of what runs."""
        return Servers(
            cassandra=self.cassandra.release,
            cassandra_hosts=tuple(node.address for node in self.cassandra.cdc_nodes),
            cassandra_port=self.cassandra.port,
            nodes=tuple(
                NodeAddress(node.address, node.port, node.datacenter, str(node.cdc_raw) if node.cdc_enabled else None)
                for node in self.cassandra.nodes
            ),
            kafka=self.kafka.bootstrap_servers,
            registry=f"http://{LOCALHOST}:{self._registry_port}",
            topic_prefix=TOPIC_PREFIX,
            pid=os.getpid(),
        )

    @property
    def materializer(self) -> Program:
        assert self._materializer is not None
        return self._materializer

    @property
    def archive(self) -> Program:
        assert self._archive is not None
        return self._archive

    def start(self) -> Self:
        """Side by side, each as soon as what it needs is there."""
        started = time.monotonic()
        self._report(f"Starting Cassandra {self.cassandra.release}, Kafka, the registry and Spark")
        archive = [self._start_archive] if self._archived else []
        self._side_by_side(self._start_kafka_side, self._start_cassandra_side, *archive)
        write_servers(self.servers)
        write_settings(self._all_settings())
        self._report(f"All is up ({time.monotonic() - started:.0f} s)")
        return self

    def add_node(self, datacenter: str) -> CassandraNode:
        """One more node, which joins the running ring, with what runs beside a node with CDC. Raises CdcError."""
        node = self.cassandra.add_node(datacenter)
        node.start()
        if node.cdc_enabled:
            self._start_beside(node)
        return node

    def check(self) -> None:
        """Raises CdcError(SERVER_FAILED) for one of our programs that has ended."""
        for program in self.programs():
            program.check()

    def close(self, *, keep: bool = False) -> None:
        """Stop everything; with `keep` the logs stay. Also when it is still starting."""
        remove_servers()
        remove_settings()
        self._end_starting()
        stoppers = [threading.Thread(target=program.stop) for program in self.programs()]
        for stopper in stoppers:
            stopper.start()
        for stopper in stoppers:
            stopper.join()
        self.kafka.close(keep=keep)
        self.cassandra.close(keep=keep)
        self._folder.close(keep=keep)

    def _start_kafka_side(self) -> None:
        self._side_by_side(self.kafka.start, self.schematizer.start)
        self._has_kafka.set()
        settings = {**self._joined(), **self._settings}
        self._materializer = programs.materializer(self._folder.path, settings, report=self._report)
        self._materializer.release = self._release
        self._materializer.start()
        self._report("Spark is up")

    def _start_cassandra_side(self) -> None:
        self.cassandra.start()
        self._report("Cassandra is up")
        self._has_kafka.wait()
        for node in self.cassandra.cdc_nodes:
            self._start_beside(node)

    def _start_archive(self) -> None:
        self._has_kafka.wait()
        own: dict[str, Setting] = {**ARCHIVE_SETTINGS, "archive.topics": self._archived}
        self._archive = programs.archive(self._folder.path, {**own, **self._joined()}, report=self._report)
        self._archive.release = self._release
        self._archive.start()
        self._report("The archive is up")

    def _start_beside(self, node: CassandraNode) -> None:
        """A publisher and a filler."""
        suffix = "" if len(self.cassandra.cdc_nodes) == 1 else f"-{node.name}"
        nodetool = ",".join(node.nodetool_command())
        own: dict[str, Setting] = {"publisher.nodetool": nodetool, "filler.nodetool": nodetool, **OF_A_SHARED_MACHINE}
        if not self.cassandra.version.tells_settings:
            own["publisher.snapshot_data_directories"] = str(node.folder / "data")
        where = (self._folder.path, node.address, node.cdc_raw, own | self._joined() | self._settings)
        for beside, program in (
            (self.publishers, programs.publisher(*where, f"publisher{suffix}")),
            (self.fillers, programs.filler(*where, f"filler{suffix}")),
        ):
            program.release = self._release
            beside.append(program)
            program.start()

    def _all_settings(self) -> dict[str, Setting]:
        """The settings of all programs. Those of publishers and fillers are the first one's."""
        programs = (self.schematizer, self.materializer, self._archive, *self.fillers[:1], *self.publishers[:1])
        return {name: value for program in programs if program for name, value in program.settings.items()}

    def _joined(self) -> dict[str, str]:
        return self.servers.settings()

    def programs(self) -> list[Program]:
        """Those that have been started."""
        made = (self._materializer, self._archive, *self.publishers, *self.fillers, self.schematizer)
        return [program for program in made if program is not None and program.process is not None]

    def _side_by_side(self, *steps: Callable[[], object]) -> None:
        """Run the steps in threads; the first error is raised as soon as it comes."""
        errors: list[BaseException] = []
        done = threading.Semaphore(0)

        def run(step: Callable[[], object]) -> None:
            try:
                step()
            except BaseException as error:  # noqa: BLE001 - raised below, in the caller's thread
                errors.append(error)
            finally:
                done.release()

        for step in steps:
            thread = threading.Thread(target=run, args=(step,), daemon=True)
            self._threads.append(thread)
            thread.start()
        for _ in steps:
            done.acquire()
            if errors:
                raise errors[0]

    def _end_starting(self) -> None:
        """Kill what is starting until no thread starts anything more; the guard sees to what is later than that."""
        self._has_kafka.set()
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while any(thread.is_alive() for thread in self._threads) and time.monotonic() < deadline:
            self.kafka.kill()
            for node in self.cassandra.nodes:
                node.kill()
            for program in self.programs():
                program.kill()
            time.sleep(0.05)
