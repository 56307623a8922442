"""One Kafka broker (KRaft: broker and controller in one) as a child process."""

from __future__ import annotations

import base64
import subprocess
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Self

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.java.jars import KAFKA, class_path, install
from dev.local_stack.java.runtime import Java, find_java
from dev.local_stack.process.lifecycle import FolderServer, retry_start
from dev.local_stack.process.network import LOCALHOST, PORT_TAKEN, accepts, free_ports
from dev.local_stack.process.processes import ChildProcess, ServerProcess

if TYPE_CHECKING:
    from pathlib import Path

Report = Callable[[str], None]

JAVA = 17
READY = "Kafka Server started"

LOG4J = """<Configuration status="WARN">
  <Appenders>
    <Console name="log"><PatternLayout pattern="%-5level %date{ISO8601} %logger{1} - %msg%n"/></Console>
  </Appenders>
  <Loggers>
    <Root level="INFO"><AppenderRef ref="log"/></Root>
    <Logger name="org.apache.kafka.common.config.AbstractConfig" level="WARN"/>
    <Logger name="kafka.server.KafkaConfig" level="WARN"/>
  </Loggers>
</Configuration>
"""


class KafkaBroker(FolderServer):
    """A broker whose ports and data stay when it is stopped or killed; `start` goes on with them.

    `settings` are laid over server.properties. is_optimized: with Java's optimizing compiler, where the broker's own
    speed matters. Without it a broker uses 3 CPU seconds for its start and 20,000 messages instead of 5.5.
    """

    start_seconds = 300.0  # five on an idle machine
    address = LOCALHOST

    def __init__(
        self,
        *,
        settings: Mapping[str, str] | None = None,
        heap_mib: int = 512,
        folder: Path | None = None,
        report: Report = print,
        is_optimized: bool = False,
    ) -> None:
        super().__init__("kafka", folder, report)
        self.heap_mib = heap_mib
        self.is_optimized = is_optimized
        self.settings = dict(settings or {})
        self.port, self.controller_port = free_ports(2)
        self._java: Java | None = None

    @property
    def java(self) -> Java:
        if self._java is None:
            self._java = find_java(JAVA, self.report)
        return self._java

    @property
    def bootstrap_servers(self) -> str:
        return f"{self.address}:{self.port}"

    def start(self) -> Self:
        """Install what is missing, format the data folder the first time, start. Raises CdcError."""
        self.install()
        if (self.folder.path / "data").exists():
            return super().start()
        retry_start(self._start_formatted, self.kill, self._replace_taken_ports)
        return self

    def _start_formatted(self) -> None:
        self.format()
        super().start()

    def _replace_taken_ports(self) -> bool:
        """Pick other ports if another process took one of these first; False if that was not the failure."""
        if self.process is None or not PORT_TAKEN.search(self.process.output()):
            return False
        self.port, self.controller_port = free_ports(2)
        return True

    def is_ready(self) -> bool:
        return READY in self._running().output() and accepts(self.address, self.port)

    def install(self) -> None:
        """Bring what it needs to start."""
        install(KAFKA, self.report)

    def properties(self) -> dict[str, str]:
        """This broker's server.properties."""
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{self.address}:{self.controller_port}",
            "listeners": f"PLAINTEXT://{self.address}:{self.port},CONTROLLER://{self.address}:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address}:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.folder.path / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "4",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",  # a test need not wait 10 s
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "log.retention.hours": "168",
            "metadata.max.idle.interval.ms": "60000",  # a record each 500 ms: half of what an idle broker takes
            "num.network.threads": "2",
            "num.io.threads": "4",
            "num.recovery.threads.per.data.dir": "2",
            **self.settings,
        }

    def write_configuration(self) -> Path:
        path = self.folder.path / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in self.properties().items()))
        (self.folder.path / "log4j2.xml").write_text(LOG4J)
        return path

    def format(self) -> None:
        """Make the data folder."""
        properties = self.write_configuration()
        command = self._jvm(64, "kafka.tools.StorageTool", "format", "-t", self.cluster_id(), "-c", str(properties))
        done = subprocess.run([*command, "--ignore-formatted"], capture_output=True, text=True, check=False)
        if done.returncode:
            raise CdcError(
                Code.SERVER_FAILED,
                f"Kafka's storage could not be formatted:\n{(done.stdout + done.stderr).strip()}\n",
                f"Its settings are in {properties}.",
            )

    def cluster_id(self) -> str:
        """The id that the data folder gets."""
        return cluster_id()

    def launch(self) -> ServerProcess:
        return ChildProcess("kafka", self.command(), log=self.log, cwd=self.folder.path)

    def command(self) -> list[str]:
        """Return the command that runs the broker; its configuration is written."""
        return self._jvm(self.heap_mib, "kafka.Kafka", str(self.write_configuration()))

    def _jvm(self, heap_mib: int, *arguments: str) -> list[str]:
        return [
            str(self.java.executable),
            f"-Xmx{heap_mib}m",
            *("-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:+ExitOnOutOfMemoryError"),
            f"-XX:TieredStopAtLevel={4 if self.is_optimized else 1}",
            f"-Dlog4j2.configurationFile={(self.folder.path / 'log4j2.xml').as_uri()}",
            *("-cp", class_path(KAFKA)),
            *arguments,
        ]


def cluster_id() -> str:
    """A fresh id, as Kafka's storage tool wants it; one that began with a hyphen would be taken for an option."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "_")
