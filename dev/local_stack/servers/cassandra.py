"""A Cassandra cluster as child processes: any version, nodes and datacenters, each node on a loopback address."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Self

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.java.jars import class_path, install
from dev.local_stack.java.nodetool_shims import shims_folder
from dev.local_stack.java.runtime import Java, find_java
from dev.local_stack.process.folders import ServerFolder
from dev.local_stack.process.lifecycle import Managed, Restartable, retry_start
from dev.local_stack.process.network import PORT_TAKEN, free_ports, loopback_addresses, speaks_cql
from dev.local_stack.process.processes import ChildProcess, ServerProcess
from dev.local_stack.servers.cassandra_options import FAST_START, FAST_START_OF_JAVA, JOINS, LOGBACK, CassandraOptions
from dev.local_stack.servers.cassandra_versions import TOOL_CLASS, VERSIONS, CassandraVersion

if TYPE_CHECKING:
    from pathlib import Path

Report = Callable[[str], None]

NODETOOL_SECONDS = 600.0
SEED_TOO_SLOW = re.compile("Unable to gossip with any peers")  # within FAST_START's ring delay, on a busy machine
CDC_DATACENTER = "cdc"


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of a cluster: the same on each node's address, except JMX."""

    # The port for CQL.
    native: int
    # The port for other nodes.
    storage: int
    # The port for other nodes with TLS.
    ssl_storage: int
    # The port for JMX of each node, on 127.0.0.1.
    jmx: tuple[int, ...]


class CassandraNode(Restartable[ServerProcess]):
    """One node: its files stay when it is stopped or killed, and `start` goes on with them. It begins as the cluster's
    `version`, and `upgrade` makes it another.
    """

    start_seconds = 600.0  # 20 on an idle machine; minutes for an upgraded one on a busy machine
    stop_seconds = 60.0

    def __init__(self, cluster: CassandraCluster, number: int, datacenter: str, address: str, *, cdc: bool) -> None:
        self.cluster = cluster
        self.number = number
        self.version = cluster.version
        self.name = f"cassandra-{cluster.version.line}-{number}"
        self.datacenter = datacenter
        self.address = address
        self.cdc_enabled = cdc
        self.folder = cluster.folder.path / f"node{number}"
        self.bootstraps = False
        self._is_replacement = False

    @property
    def cdc_raw(self) -> Path:
        return self.folder / "cdc_raw"

    @property
    def commitlog(self) -> Path:
        return self.folder / "commitlog"

    @property
    def port(self) -> int:
        return self.cluster.ports.native

    @property
    def log(self) -> Path:
        return self.folder / "system.log"

    def start(self) -> Self:
        """Start it, or start it again on its data; returns when clients and its peers see it up.

        Raises CdcError(SERVER_FAILED) with the log's end, at once when it dies.
        """
        is_new = not self.commitlog.exists()
        retry_start(super().start, self.kill, partial(self._prepare_retry, is_new=is_new))
        return self

    def _prepare_retry(self, *, is_new: bool) -> bool:
        """Return whether the node found no peer, and so may start again. If it is new, delete its data first: the
        system tables of a first start that was cut short cannot be loaded.
        """
        if self.process is None or SEED_TOO_SLOW.search(self.process.output()) is None:
            return False
        if is_new:
            for folder in (self.folder / "data", self.commitlog, self.cdc_raw):
                shutil.rmtree(folder, ignore_errors=True)
        return True

    def upgrade(self, line: str) -> None:
        """Make it another of VERSIONS, as an operator does: drained and stopped, started on its files with the other
        version's jars, Java and cassandra.yaml, and its SSTables rewritten. Raises CdcError.
        """
        version = version_of(line)
        self.cluster.install(version)
        self.nodetool("drain")
        self.stop()
        self.version = version
        self.start()
        self.nodetool("upgradesstables")

    def replace(self) -> None:
        """Make it another node at the same address, as an operator does with one that is lost: without any files, it
        streams what it owns from its peers. It is not the first one, which is the seed. Raises CdcError.
        """
        self.discard()
        for peer in self.cluster.nodes:  # no node that lives can be replaced
            if peer is not self and peer.is_running:
                peer._running().wait_ready(  # noqa: SLF001 - another node
                    partial(peer.has_lost, self), f"it saw {self.address} down", self.start_seconds
                )
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        self.bootstraps = self._is_replacement = True
        self.start()

    def is_ready(self) -> bool:
        return speaks_cql(self.address, self.port)

    def wait_ready(self) -> None:
        """Wait until the node answers clients, sees its peers up, and they see it up."""
        super().wait_ready()
        process = self._running()
        for peer in self.cluster.nodes:
            if peer is not self and peer.is_running:
                process.wait_ready(partial(self.sees, peer), f"it saw {peer.address} up", self.start_seconds)
                process.wait_ready(partial(peer.sees, self), f"{peer.address} saw it up", self.start_seconds)

    def sees(self, peer: CassandraNode) -> bool:
        """Whether this node's log, since it started, ends with that peer being up."""
        said = re.findall(rf"/{re.escape(peer.address)}\S* is now (UP|DOWN)", self._running().output())
        return bool(said) and said[-1] == "UP"

    def has_lost(self, peer: CassandraNode) -> bool:
        return not self.sees(peer)

    def nodetool_command(self) -> list[str]:
        """Return the command that runs this node's nodetool; its subcommand comes after."""
        java, version, conf = self.java, self.version, self.folder / "conf"
        needs_shims = java.is_trimmed or version.tool_class != TOOL_CLASS
        folders = [conf, shims_folder(self.cluster.report)] if needs_shims else [conf]
        command = [str(java.executable), "-Xmx64m", "-XX:TieredStopAtLevel=1", *version.module_options()]
        command += [f"-Dlogback.configurationFile={conf / 'logback.xml'}", "-Djava.rmi.server.hostname=127.0.0.1"]
        command += ["-Djava.naming.factory.initial=RmiNames"] if java.is_trimmed else []
        command += ["-cp", class_path(version.jars, *folders), version.tool_class]
        return [*command, "-h", "127.0.0.1", "-p", str(self.jmx_port)]

    def nodetool(self, *arguments: str) -> str:
        """Return nodetool's output. Raises CdcError(SERVER_FAILED) when it fails."""
        command = [*self.nodetool_command(), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=NODETOOL_SECONDS, check=False)
        if done.returncode:
            raise CdcError(
                Code.SERVER_FAILED,
                f"nodetool {' '.join(arguments)} on {self.name} failed: {(done.stderr or done.stdout).strip()}.",
                f"The node's log is in {self.log}.",
            )
        return done.stdout

    def launch(self) -> ServerProcess:
        self.write_configuration()
        return ChildProcess(self.name, self.command(), log=self.log, cwd=self.folder)

    def write_configuration(self) -> None:
        conf = self.folder / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        self.cdc_raw.mkdir(exist_ok=True)
        (conf / "cassandra.yaml").write_text(json.dumps(self.yaml(), indent=2))  # JSON is YAML
        (conf / "cassandra-rackdc.properties").write_text(f"dc={self.datacenter}\nrack=rack1\n")
        (conf / "logback.xml").write_text(LOGBACK)

    def yaml(self) -> dict[str, object]:
        """This node's cassandra.yaml."""
        options, version, ports = self.cluster.options, self.version, self.cluster.ports
        seed = self.cluster.nodes[0].address
        return {
            "cluster_name": self.cluster.name,
            "num_tokens": options.num_tokens,
            "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
            "commitlog_sync": "periodic",
            **dict(
                version.spell(name, getattr(options, name))
                for name in ("commitlog_sync_period_ms", "commitlog_segment_mib")
            ),
            **dict(
                [version.spell("cdc_total_space_mib", options.cdc_total_space_mib), version.spell("file_cache_mib", 64)]
            ),
            "cdc_enabled": self.cdc_enabled,
            "cdc_raw_directory": str(self.cdc_raw),
            "data_file_directories": [str(self.folder / "data")],
            "commitlog_directory": str(self.commitlog),
            "saved_caches_directory": str(self.folder / "saved_caches"),
            "hints_directory": str(self.folder / "hints"),
            "endpoint_snitch": "GossipingPropertyFileSnitch",
            "listen_address": self.address,
            "rpc_address": self.address,
            "start_native_transport": True,
            "native_transport_port": ports.native,
            "storage_port": ports.storage,
            "ssl_storage_port": ports.ssl_storage,
            "seed_provider": [
                {
                    "class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
                    "parameters": [{"seeds": f"{seed}:{ports.storage}" if version.seed_has_port else seed}],
                }
            ],
            "auto_bootstrap": self.bootstraps,
            "auto_snapshot": False,
            **options.commit_log_form(),
            **version.yaml,
            **options.yaml,
        }

    def command(self) -> list[str]:
        """The JVM's command line."""
        cluster = self.cluster
        return [
            str(self.java.executable),
            *(f"-Xm{kind}{cluster.options.heap_mib}m" for kind in "sx"),
            *("-Xss512k", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:+ExitOnOutOfMemoryError"),
            FAST_START_OF_JAVA,
            *self.version.module_options(),
            *self.own_options(),
            *("-cp", f"{class_path(self.version.jars)}{os.pathsep}{self.folder / 'conf'}"),
            "org.apache.cassandra.service.CassandraDaemon",
        ]

    def own_options(self) -> list[str]:
        """The JVM options that are this node's: where its files are, which ports, how it starts."""
        conf = self.folder / "conf"
        properties = {
            "cassandra.config": (conf / "cassandra.yaml").as_uri(),
            "cassandra-rackdc.properties": (conf / "cassandra-rackdc.properties").as_uri(),
            "cassandra.storagedir": str(self.folder),
            "cassandra.logdir": str(self.folder),
            "cassandra.jmx.local.port": str(self.jmx_port),
            "cassandra-foreground": "yes",
            "logback.configurationFile": str(conf / "logback.xml"),
            "jdk.attach.allowAttachSelf": "true",
            "java.io.tmpdir": str(self.folder),
            **FAST_START,
            **(JOINS if self.bootstraps else {}),
            **({"cassandra.replace_address_first_boot": self.address} if self._is_replacement else {}),
        }
        return [*(f"-D{name}={value}" for name, value in properties.items()), *self.cluster.options.jvm_options]

    @property
    def java(self) -> Java:
        return self.cluster.java_of(self.version)

    @property
    def jmx_port(self) -> int:
        return self.cluster.ports.jmx[self.number - 1]


def version_of(line: str) -> CassandraVersion:
    """Raises CdcError(STACK_MISSING) when it is not one of VERSIONS."""
    if line not in VERSIONS:
        raise CdcError(
            Code.STACK_MISSING,
            f"Cassandra {line} is not known here.",
            f"Take one of {', '.join(sorted(VERSIONS))}.",
        )
    return VERSIONS[line]


class CassandraCluster(Managed):
    """Nodes that know each other. `datacenters` (name → number of nodes) or `nodes` (all in `datacenter1`).

    CDC is on in the datacenter `cdc` if there is one, otherwise on all nodes.
    """

    node_class: type[CassandraNode] = CassandraNode
    ports: Ports

    def __init__(  # noqa: PLR0913 - settings by keyword, all with defaults
        self,
        version: str = "5.0",
        *,
        nodes: int = 1,
        datacenters: Mapping[str, int] | None = None,
        options: CassandraOptions | None = None,
        folder: Path | None = None,
        report: Report = print,
    ) -> None:
        """`folder` holds the nodes' files; by default a fresh one in `.run`, which `close` removes."""
        self.version = version_of(version)
        self.options = options or CassandraOptions()
        self.folder = ServerFolder(f"cassandra-{version}", folder)
        self.name = self.folder.path.name
        self.report = report
        self.datacenters = dict(datacenters or {"datacenter1": nodes})
        self.nodes: list[CassandraNode] = []
        self._lay_out()
        self._javas: dict[int, Java] = {}

    @property
    def java(self) -> Java:
        return self.java_of(self.version)

    def java_of(self, version: CassandraVersion) -> Java:
        """The one that this version runs on, looked for once."""
        if version.java not in self._javas:
            self._javas[version.java] = find_java(version.java, self.report)
        return self._javas[version.java]

    @property
    def release(self) -> str:
        return self.version.release

    @property
    def contact_points(self) -> list[str]:
        """Addresses of the nodes with CDC: the datacenter that our programs connect to."""
        return [node.address for node in self.cdc_nodes]

    @property
    def port(self) -> int:
        return self.ports.native

    @property
    def cdc_nodes(self) -> list[CassandraNode]:
        return [node for node in self.nodes if node.cdc_enabled]

    def start(self) -> Self:
        """Install what is missing and start all nodes: the first, then the others together. Raises CdcError."""
        self.install(self.version)
        retry_start(self._start_nodes, self.kill, self._replace_taken_ports)
        return self

    def install(self, version: CassandraVersion) -> None:
        """Bring what a node of this version needs to start."""
        install(version.jars, self.report)

    def add_node(self, datacenter: str) -> CassandraNode:
        """One more node, not started: with its first start it joins the ring and streams what it owns from then on."""
        block, _, _ = self.nodes[0].address.rpartition(".")
        number = len(self.nodes) + 1
        node = self.node_class(self, number, datacenter, f"{block}.{number}", cdc=self._has_cdc(datacenter))
        node.bootstraps = True
        self.ports = replace(self.ports, jmx=(*self.ports.jmx, *free_ports(1)))
        self.nodes.append(node)
        return node

    def stop(self) -> None:
        """Stop every node gracefully; the files stay."""
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(lambda node: node.stop(), self.nodes))

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def close(self, *, keep: bool = False) -> None:
        for node in self.nodes:
            node.discard()
        self.folder.close(keep=keep)

    def _lay_out(self) -> None:
        """Pick addresses and ports, and name the nodes."""
        placed = [datacenter for datacenter, count in self.datacenters.items() for _ in range(count)]
        addresses = self.pick_addresses(len(placed))
        self.ports = self.pick_ports(addresses)
        self.nodes = [
            self.node_class(self, number, datacenter, address, cdc=self._has_cdc(datacenter))
            for number, (datacenter, address) in enumerate(zip(placed, addresses, strict=True), start=1)
        ]

    def pick_addresses(self, count: int) -> list[str]:
        """An address for each of `count` nodes. They end with the nodes' numbers."""
        return loopback_addresses(count)

    def pick_ports(self, addresses: list[str]) -> Ports:
        """Ports that are free on the addresses."""
        native, storage, ssl_storage = free_ports(3, *addresses)
        return Ports(native, storage, ssl_storage, tuple(free_ports(len(addresses))))

    def _has_cdc(self, datacenter: str) -> bool:
        return CDC_DATACENTER not in self.datacenters or datacenter == CDC_DATACENTER

    def _start_nodes(self) -> None:
        first, *others = self.nodes
        first.start()
        for node in others:
            node.start()

    def _replace_taken_ports(self) -> bool:
        """Lay the nodes out again if another process took a port first; False if that was not the failure."""
        logs = [node.process.output() for node in self.nodes if node.process]
        if not any(PORT_TAKEN.search(log) for log in logs):
            return False
        self._lay_out()
        return True
