"""The same servers in containers, through testcontainers: `SERVERS=containers`.

Official images (`cassandra:<release>`, `apache/kafka:4.1.0`) run with the settings and files that the child processes
have, each server's folder mounted at its own path (`cdc_raw` is there for the publisher to read and delete from), as
this process's user. Each cluster and broker has a network of its own, each container an address. That takes an engine
on this machine, which is Linux; testcontainers' reaper removes the containers when this process dies.

`make verify WHAT=container-tests` runs tests on them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.java.jars import KAFKA
from dev.local_stack.process.network import LOCALHOST
from dev.local_stack.process.processes import ServerProcess
from dev.local_stack.servers.cassandra import CassandraCluster, CassandraNode, Ports
from dev.local_stack.servers.container_network import NOT_INSTALLED, ContainerNetwork
from dev.local_stack.servers.kafka import KafkaBroker, Report, cluster_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dev.local_stack.servers.cassandra_versions import CassandraVersion

KAFKA_IMAGE = f"apache/kafka:{KAFKA.name.partition('-')[2]}"
KAFKA_HOME = "/opt/kafka/bin"
CASSANDRA_COMMAND = ("/opt/cassandra/bin/cassandra", "-f", "-R")  # -R: it may be root, if we are
NO_ENGINE_FIX = "Start one (systemctl start docker), or leave SERVERS=containers away: child processes need no engine."


class ContainerProcess(ServerProcess):
    """A container as a process: its log is copied to `log` whenever it is asked for."""

    def __init__(  # noqa: PLR0913 - settings by keyword
        self,
        name: str,
        image: str,
        command: Sequence[str],
        *,
        log: Path,
        folder: Path,
        environment: Mapping[str, str],
        network: ContainerNetwork,
        address: str,
    ) -> None:
        """Run `command` instead of the image's entry point. Raises CdcError(STACK_MISSING) without an engine."""
        self.name = name
        self.log = log
        self._container = _start(image, command, folder, environment, network.options(address))

    @property
    def container_id(self) -> str:
        """The engine's id of it."""
        return str(self._container.id)

    @property
    def exit_status(self) -> int | None:
        self._container.reload()
        state = self._container.attrs["State"]
        if state["Running"]:
            return None
        code = int(state["ExitCode"])
        return 128 - code if code > 128 else code

    def output(self) -> str:
        text: str = self._container.logs().decode(errors="replace")
        self.log.write_text(text)
        return text

    def execute(self, *command: str) -> tuple[int, str]:
        """Exit status and output of a command inside."""
        status, output = self._container.exec_run(list(command))
        return int(status), output.decode(errors="replace")

    def stop(self, grace_seconds: float = 10.0) -> None:
        if self.is_running:
            self.resume()
            self._container.stop(timeout=int(grace_seconds))

    def kill(self) -> None:
        if self.is_running:
            self._container.kill()
            self._container.wait()

    def pause(self) -> None:
        self._container.pause()

    def resume(self) -> None:
        self._container.reload()
        if self._container.status == "paused":
            self._container.unpause()

    def remove(self) -> None:
        """Copy its log, and remove the container."""
        self.output()
        self._container.remove(force=True, v=True)


def _start(
    image: str, command: Sequence[str], folder: Path, environment: Mapping[str, str], network: Mapping[str, Any]
) -> Any:  # noqa: ANN401 - docker's own class
    """A running container (docker.models.containers.Container)."""
    try:
        from docker.errors import DockerException  # noqa: PLC0415 - an extra of its own: [containers]
        from testcontainers.core.container import DockerContainer  # noqa: PLC0415 - as above
    except ImportError as error:
        raise NOT_INSTALLED from error
    try:
        container = (
            DockerContainer(image)
            .with_command(list(command[1:]))
            .with_volume_mapping(str(folder), str(folder), "rw")
            .with_kwargs(entrypoint=command[0], user=f"{os.getuid()}:{os.getgid()}", working_dir=str(folder), **network)
        )
        for name, value in environment.items():
            container.with_env(name, value)
        return container.start().get_wrapped_container()
    except (DockerException, OSError) as error:
        raise CdcError(
            Code.STACK_MISSING, f"No Docker engine answers, or {image} does not start: {error}.", NO_ENGINE_FIX
        ) from error


class ContainerNode(CassandraNode):
    """A node in a container of the official image."""

    def launch(self) -> ContainerProcess:
        self.write_configuration()
        heap = self.cluster.options.heap_mib
        environment = {
            "MAX_HEAP_SIZE": f"{heap}M",
            "HEAP_NEWSIZE": f"{heap // 4}M",
            "JVM_EXTRA_OPTS": " ".join(self.own_options()),
        }
        assert isinstance(self.cluster, ContainerCassandra)
        return ContainerProcess(
            self.name,
            f"cassandra:{self.version.release}",
            CASSANDRA_COMMAND,
            log=self.log,
            folder=self.folder,
            environment=environment,
            network=self.cluster.network,
            address=self.address,
        )

    def nodetool_command(self) -> list[str]:
        """The node's own nodetool, inside its running container."""
        assert isinstance(self.process, ContainerProcess)
        return ["docker", "exec", self.process.container_id, "nodetool", "-h", LOCALHOST, "-p", str(self.jmx_port)]

    def nodetool(self, *arguments: str) -> str:
        assert isinstance(self.process, ContainerProcess)
        status, output = self.process.execute("nodetool", "-h", LOCALHOST, "-p", str(self.jmx_port), *arguments)
        if status:
            raise self.process.failure(f"refused nodetool {' '.join(arguments)}: {output}")
        return output


class ContainerCassandra(CassandraCluster):
    """CassandraCluster, its nodes in containers."""

    node_class = ContainerNode
    network: ContainerNetwork

    def pick_addresses(self, count: int) -> list[str]:
        """Addresses in a network of this cluster's own."""
        self.network = ContainerNetwork()
        return [self.network.address(number) for number in range(1, count + 1)]

    def pick_ports(self, addresses: list[str]) -> Ports:
        """Cassandra's own: nothing else listens on these addresses."""
        return Ports(9042, 7000, 7001, (7199,) * len(addresses))

    def install(self, version: CassandraVersion) -> None:  # noqa: ARG002 - the engine pulls the image
        """Make the network; the engine pulls the image."""
        self.network.create()

    def close(self, *, keep: bool = False) -> None:
        super().close(keep=keep)
        self.network.remove()


class ContainerKafka(KafkaBroker):
    """KafkaBroker in a container."""

    def __init__(
        self, *, settings: Mapping[str, str] | None = None, folder: Path | None = None, report: Report = print
    ) -> None:
        self._network = ContainerNetwork()
        self.address = self._network.address(1)
        super().__init__(settings=settings, folder=folder, report=report)

    def install(self) -> None:
        """Make the network; the engine pulls the image."""
        self._network.create()

    def close(self, *, keep: bool = False) -> None:
        super().close(keep=keep)
        self._network.remove()

    def format(self) -> None:
        """The container does it before it starts the broker."""

    def launch(self) -> ContainerProcess:
        properties = self.write_configuration()
        format_first = f"{KAFKA_HOME}/kafka-storage.sh format --ignore-formatted -t {cluster_id()} -c {properties}"
        script = f"{format_first} && exec {KAFKA_HOME}/kafka-server-start.sh {properties}"
        environment = {
            "KAFKA_HEAP_OPTS": f"-Xmx{self.heap_mib}m",
            "KAFKA_LOG4J_OPTS": f"-Dlog4j2.configurationFile={(self.folder.path / 'log4j2.xml').as_uri()}",
            "LOG_DIR": str(self.folder.path / "logs"),
        }
        return ContainerProcess(
            "kafka",
            KAFKA_IMAGE,
            ("/bin/bash", "-c", script),
            log=self.log,
            folder=self.folder.path,
            environment=environment,
            network=self._network,
            address=self.address,
        )
