"""All servers and programs in containers on a network of their own."""

from __future__ import annotations

import socket
import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient
from testcontainers.core.network import Network
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from cassandra_cdc_testcontainers.changes import read_changes
from cassandra_cdc_testcontainers.images import Images

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

START_SECONDS = 300
_SHOWN = 3000  # characters of a log
_CQL, _KAFKA_OUTSIDE, _REGISTRY = 9042, 29092, 8081
_DATA = "/var/lib/cassandra"
_READY = '"event": "ready"'
_CONFINED: Mapping[str, Any] = {
    "read_only": True,
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges:true"],
}
REGISTRY = {"schematizer.open_reads": "true", "schematizer.open_writes": "true"}
PUBLISHER = {"publisher.state_directory": "/tmp/publisher"}  # noqa: S108 - the container's
MATERIALIZER = {
    "materializer.spark_master": "local[2]",
    "materializer.checkpoint_location": "/tmp/checkpoint",  # noqa: S108 - the container's
    "materializer.state_directory": "/tmp/state",  # noqa: S108 - as above
}
_JOINED = {
    "cassandra.contact_points": "cassandra",
    "kafka.bootstrap_servers": "kafka:9092",
    "kafka.raw_partitions": "2",
    "kafka.change_partitions": "2",
    "registry.url": f"http://registry:{_REGISTRY}",
    "node.cdc_raw_directory": f"{_DATA}/cdc_raw",
}
_CASSANDRA = {
    "cdc_enabled": "true",
    "cdc_total_space": "256MiB",
    "commitlog_sync_period": "100ms",
    "commitlog_segment_size": "4MiB",
}


class ChangeStreams:
    """A context with Cassandra and the change topics of its tables. Its containers and data are gone afterwards.

    images: other images than the default ones. settings: of the programs, such as
    {"materializer.static_rows": "include"}, laid over those that join them.
    """

    def __init__(self, images: Images | None = None, settings: Mapping[str, str] | None = None) -> None:
        self._images = images or Images()
        self._settings = dict(settings or {})
        self._stack = ExitStack()
        self._network = Network()
        self._volume = f"cassandra-cdc-{uuid.uuid4()}"
        self._kafka_port = 0
        self._containers: dict[str, DockerContainer] = {}

    def start(self) -> Self:
        """Start all containers, and wait until each works. RuntimeError or TimeoutError with a log if one does not."""
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Remove the containers, their network and Cassandra's files."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def cassandra_host(self) -> str:
        """The address of Cassandra, for a driver on this machine."""
        return self._host

    @property
    def cassandra_port(self) -> int:
        """The port of CQL on this machine."""
        return int(self._containers["cassandra"].get_exposed_port(_CQL))

    @property
    def bootstrap_servers(self) -> str:
        """Kafka's address, for a client on this machine."""
        return f"{self._host}:{self._kafka_port}"

    @property
    def registry_url(self) -> str:
        """The URL of the schema registry on this machine."""
        return f"http://{self._host}:{self._containers['registry'].get_exposed_port(_REGISTRY)}"

    def changes(self, table: str, count: int = 1, seconds: float = 60.0) -> list[dict[str, Any]]:
        """Return the first `count` changes of a table (KEYSPACE.TABLE). TimeoutError if they do not come."""
        prefix = self._settings.get("kafka.topic_prefix", "cdc")
        return read_changes(self.bootstrap_servers, self.registry_url, f"{prefix}.{table}", count, seconds)

    def log(self, name: str) -> str:
        """Return the log of a container: cassandra, kafka, registry, publisher, filler or materializer."""
        return b"".join(self._containers[name].get_logs()).decode(errors="replace")

    @property
    def _host(self) -> str:
        return str(self._containers["kafka"].get_container_host_ip())

    def _start(self) -> None:
        self._stack.enter_context(self._network)
        self._stack.callback(self._remove_volume)
        kafka, cassandra = self._kafka(), self._cassandra()
        for container in (kafka, cassandra):  # together: each takes seconds to start
            container.start()
        LogMessageWaitStrategy("Kafka Server started").with_startup_timeout(START_SECONDS).wait_until_ready(kafka)
        strategy = LogMessageWaitStrategy("Starting listening for CQL clients")
        strategy.with_startup_timeout(START_SECONDS).wait_until_ready(cassandra)
        registry = self._program("registry", self._images.schematizer, REGISTRY)
        self._start_program(registry.with_exposed_ports(_REGISTRY))
        publisher = self._program("publisher", self._images.publisher, PUBLISHER)
        filler = self._program("filler", self._images.filler, {})
        for container in (publisher, filler):
            self._start_program(container.with_volume_mapping(self._volume, _DATA, "rw"))
        self._start_program(self._program("materializer", self._images.materializer, MATERIALIZER))

    def _kafka(self) -> DockerContainer:
        self._kafka_port = _free_port()
        container = self._container("kafka", self._images.kafka)
        host = container.get_docker_client().host()
        for name, value in _kafka_settings(f"{host}:{self._kafka_port}").items():
            container.with_env(f"KAFKA_{name}", value)
        return container.with_bind_ports(_KAFKA_OUTSIDE, self._kafka_port)

    def _cassandra(self) -> DockerContainer:
        given = [f"-Dcassandra.settings.{name}={value}" for name, value in _CASSANDRA.items()]
        options = " ".join(["-Dcassandra.config.allow_system_properties=true", *given])
        container = self._container("cassandra", self._images.cassandra).with_env("JVM_EXTRA_OPTS", options)
        container.with_env("MAX_HEAP_SIZE", "768M").with_env("HEAP_NEWSIZE", "192M")
        return container.with_exposed_ports(_CQL).with_volume_mapping(self._volume, _DATA, "rw")

    def _program(self, name: str, image: str, own: Mapping[str, str]) -> DockerContainer:
        """A container of one of our programs, confined as it should be in production."""
        container = self._container(name, image).with_kwargs(**_CONFINED).with_tmpfs_mount("/tmp")  # noqa: S108
        return container.with_envs(**program_environment({**own, **self._settings}))

    def _container(self, name: str, image: str) -> DockerContainer:
        container = DockerContainer(image).with_network(self._network).with_network_aliases(name)
        self._containers[name] = container
        self._stack.callback(container.stop)
        return container

    def _start_program(self, container: DockerContainer) -> None:
        strategy = LogMessageWaitStrategy(_READY).with_startup_timeout(START_SECONDS)
        try:
            container.waiting_for(strategy).start()
        except (RuntimeError, TimeoutError) as error:
            log = b"".join(container.get_logs()).decode(errors="replace")
            raise type(error)(f"{error}\n{container.image}:\n{log[-_SHOWN:]}") from error

    def _remove_volume(self) -> None:
        for volume in DockerClient().client.volumes.list(filters={"name": self._volume}):
            volume.remove(force=True)


def program_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """The variables of a program that joins the others, with its settings: `kafka.topic_prefix` is
    CDC_KAFKA__TOPIC_PREFIX.
    """
    return {f"CDC_{name.replace('.', '__', 1).upper()}": value for name, value in {**_JOINED, **settings}.items()}


def _kafka_settings(outside: str) -> dict[str, str]:
    """The variables of Kafka's image, less KAFKA_. outside: what clients on this machine connect to."""
    return {
        "NODE_ID": "1",
        "PROCESS_ROLES": "broker,controller",
        "CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
        "LISTENERS": f"PLAINTEXT://:9092,CONTROLLER://localhost:9093,OUTSIDE://:{_KAFKA_OUTSIDE}",
        "ADVERTISED_LISTENERS": f"PLAINTEXT://kafka:9092,OUTSIDE://{outside}",
        "LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "AUTO_CREATE_TOPICS_ENABLE": "false",
        "OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        "HEAP_OPTS": "-Xmx512m",
    }


def _free_port() -> int:
    """A port that is free on this machine: Kafka must know it before its container has it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
