"""The publisher's peers as child processes: Debezium's Cassandra connector, and Cassandra's own CommitLogReader."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Self

from dev.local_stack.java.compiler import compile_java
from dev.local_stack.java.jars import class_path, install
from dev.local_stack.java.peer_jars import DEBEZIUM
from dev.local_stack.process.network import free_ports
from dev.local_stack.process.processes import ChildProcess

if TYPE_CHECKING:
    from types import TracebackType

    from dev.local_stack.servers.cassandra import CassandraNode

SOURCE = Path(__file__).with_name("java") / "ReadSegments.java"
HEAP = ("-Xms256m", "-Xmx1g", "-XX:+UseG1GC")
LOGBACK = """<configuration>
  <appender name="log" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="log"/></root>
</configuration>
"""


class Peer:
    """A Java program that reads segments; a context manager that ends it."""

    def __init__(self, name: str, node: CassandraNode, folder: Path) -> None:
        self._name = name
        self._node = node
        self._folder = folder
        self._process: ChildProcess | None = None
        folder.mkdir(parents=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()

    @property
    def pid(self) -> int:
        return self._running().pid

    def start(self) -> None:
        log = self._folder / "log"
        self._process = ChildProcess(self._name, self.command(), log=log, env=dict(os.environ), cwd=self._folder)

    def command(self) -> list[str]:
        raise NotImplementedError

    def check(self) -> None:
        """Raises CdcError(SERVER_FAILED) when it has ended with an error."""
        process = self._running()
        if process.exit_status:
            raise process.failure(f"has ended with status {process.exit_status}")

    def output(self) -> str:
        return self._running().output()

    def _running(self) -> ChildProcess:
        assert self._process is not None
        return self._process

    def java(self, yaml: Path) -> list[str]:
        """The JVM with what Cassandra's classes need; `yaml` is their cassandra.yaml."""
        node = self._node
        conf = node.folder / "conf"
        logback = self._folder / "logback.xml"
        logback.write_text(LOGBACK)
        return [
            str(node.java.executable),
            *HEAP,
            *node.version.module_options(),
            "--add-opens=java.base/java.io=ALL-UNNAMED",
            f"-Dlogback.configurationFile={logback}",
            f"-Dcassandra.config={yaml.as_uri()}",
            f"-Dcassandra.storagedir={self._folder / 'storage'}",
            f"-Dcassandra-rackdc.properties={(conf / 'cassandra-rackdc.properties').as_uri()}",
        ]


class SegmentsReader(Peer):
    """CommitLogReader over a folder's segments: it decodes every mutation, and does nothing with it."""

    def __init__(self, node: CassandraNode, folder: Path, segments: Path, keyspace: str) -> None:
        super().__init__("reader", node, folder)
        self._segments = segments
        self._keyspace = keyspace
        self._classes = folder / "classes"
        libraries = sorted(install(node.version.jars).glob("cassandra-all-*.jar"))
        compile_java([SOURCE], self._classes, level=node.version.java, libraries=libraries)

    def command(self) -> list[str]:
        """The node's own cassandra.yaml: the schema is in the node's flushed tables."""
        jars = class_path(self._node.version.jars, self._classes)
        start = self.java(self._node.folder / "conf" / "cassandra.yaml")
        return [*start, "-cp", jars, SOURCE.stem, str(self._segments), self._keyspace]

    def count(self) -> int:
        """The number of mutations, once it has read all."""
        lines = [line for line in self.output().splitlines() if line.startswith("read ")]
        return int(lines[-1].split()[1]) if lines else 0


class Debezium(Peer):
    """Debezium's connector for Cassandra 5, which reads complete segments in `cdc_raw` and moves them away."""

    def __init__(self, node: CassandraNode, bootstrap: str, folder: Path, prefix: str) -> None:
        super().__init__("debezium", node, folder)
        self.cdc_raw = folder / "cdc_raw"
        self._bootstrap = bootstrap
        self._prefix = prefix

    def command(self) -> list[str]:
        folder, node = self._folder, self._node
        for name in ("relocation", "offsets", "storage"):
            (folder / name).mkdir()
        yaml = folder / "cassandra.yaml"
        yaml.write_text(json.dumps({**node.yaml(), "cdc_raw_directory": str(self.cdc_raw)}))
        driver = folder / "application.conf"
        driver.write_text(
            f'datastax-java-driver.basic {{ contact-points = ["{node.address}:{node.port}"], '
            f'load-balancing-policy.local-datacenter = "{node.datacenter}", request.timeout = 20 seconds }}\n'
        )
        properties = folder / "debezium.properties"
        settings = self._settings(yaml, driver)
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        [jar] = install(DEBEZIUM).glob("*.jar")
        return [*self.java(yaml), "-jar", str(jar), str(properties)]

    def _settings(self, yaml: Path, driver: Path) -> dict[str, object]:
        return {
            "connector.class": "io.debezium.connector.cassandra.Cassandra5Connector",
            "topic.prefix": self._prefix,
            "cassandra.node.id": "node1",
            "cassandra.cluster.name": self._node.cluster.name,
            "cassandra.config": yaml,
            "cassandra.driver.config.file": driver,
            "snapshot.mode": "NEVER",
            "http.port": free_ports(1)[0],
            "commit.log.relocation.dir": self._folder / "relocation",
            "commit.log.post.processing.enabled": "false",
            "offset.backing.store.dir": self._folder / "offsets",
            "offset.flush.interval.ms": 1000,
            "max.offset.flush.size": 100_000,
            "cdc.dir.poll.interval.ms": 1000,
            "commit.log.marked.complete.poll.interval.ms": 1000,
            "poll.interval.ms": 100,
            "max.batch.size": 2048,
            "max.queue.size": 8192,
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "kafka.producer.bootstrap.servers": self._bootstrap,
            "kafka.producer.acks": "all",
            "kafka.producer.linger.ms": 20,
            "kafka.producer.batch.size": 131_072,
        }
