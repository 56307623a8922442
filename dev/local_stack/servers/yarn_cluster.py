"""A YARN cluster as child processes: a resource manager and node managers, and the staging folder on the local disk.

Its containers get nothing of this project from it: what a job needs, YARN copies to the node manager's folder.
"""

from __future__ import annotations

import re
import subprocess
import zipfile
from contextlib import suppress
from typing import TYPE_CHECKING, Self
from xml.sax.saxutils import escape

import psutil

from dev.local_stack.java import jars
from dev.local_stack.java.peer_jars import YARN
from dev.local_stack.java.runtime import find_java
from dev.local_stack.process.folders import ServerFolder
from dev.local_stack.process.lifecycle import Managed, Restartable
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.process.processes import ChildProcess
from dev.local_stack.servers.spark_cluster import EXECUTOR, PYTHON_WORKER, spark_home

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

JAVA = 17
# Hadoop's own classes look into Java's.
OPENED = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "java.util", "java.net")]
HEAP = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
NODE_MEMORY_MB, NODE_CORES = 6144, 8
RESOURCE_MANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
CLIENT = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
STATE_CHANGE = re.compile(r"(application_\d+_\d+) State change from \w+ to (\w+)")
NODE_MANAGER = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
APPLICATION_MASTER = "org.apache.spark.deploy.yarn.ApplicationMaster"
LOG4J = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""
QUEUES = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": 100,
    "yarn.scheduler.capacity.maximum-am-resource-percent": 0.9,
}


class YarnDaemon(Restartable[ChildProcess]):
    """The resource manager or a node manager. `start` again after a kill goes on at the same ports."""

    def __init__(self, name: str, main: str, folder: Path, java_home: Path, ready: str) -> None:
        """main: the class. folder: its own, which has `conf`. ready: what it logs once it works."""
        self.name = name
        self.folder = folder
        self._main = main
        self._java_home = java_home
        self._ready = ready

    def command_of(self, main: str, configuration: Path) -> list[str]:
        """The command line of a class of Hadoop's."""
        scratch = f"-Djava.io.tmpdir={self.folder}"
        class_path = jars.class_path(YARN, configuration)
        return [str(self._java_home / "bin" / "java"), scratch, *HEAP, *OPENED, "-cp", class_path, main]

    def launch(self) -> ChildProcess:
        command = self.command_of(self._main, self.folder / "conf")
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.folder),
            "JAVA_HOME": str(self._java_home),
            "USER": "yarn",
        }
        return ChildProcess(self.name, command, log=self.folder / f"{self.name}.log", env=environment, cwd=self.folder)

    def is_ready(self) -> bool:
        return self._ready in self._running().output()


class NodeManager(YarnDaemon):
    """A node manager. Each of its containers leads a process group of its own."""

    @property
    def logs(self) -> Path:
        """The folder of the containers' logs: application, container, stdout or stderr."""
        return self.folder / "logs"

    def executors(self) -> list[int]:
        """Pids of the JVMs of the executors in its containers."""
        return self._running_with("java", EXECUTOR)

    def python_workers(self) -> list[int]:
        """Pids of the executors' Pythons."""
        return self._running_with("python", PYTHON_WORKER)

    def masters(self) -> list[int]:
        """Pids of the application masters that have a driver."""
        return self._running_with("java", APPLICATION_MASTER)

    def kill(self) -> None:
        """SIGKILL to it and to all its containers."""
        started = self._descendants()
        super().kill()
        for process in started:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def _running_with(self, program: str, word: str) -> list[int]:
        return [process.pid for process in self._descendants() if _is_running(process, program, word)]

    def _descendants(self) -> list[psutil.Process]:
        if self.process is None or not self.process.is_running:
            return []
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.process.pid).children(recursive=True)
        return []


class YarnCluster(Managed):
    """A resource manager and node managers. `client_configuration` is for HADOOP_CONF_DIR."""

    def __init__(self, nodes: int = 2, *, report: Callable[[str], None] = print) -> None:
        self.folder = ServerFolder("yarn")
        jars.install(YARN, report)
        java_home = find_java(JAVA, report).home
        names = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
        ports = free_ports(len(names) + 3 * nodes)
        manager = {f"yarn.resourcemanager.{name}": _address(ports.pop()) for name in names}
        self.staging = self._folder("staging")  # of jobs
        common = {
            **manager,
            "yarn.resourcemanager.hostname": LOCALHOST,
            "yarn.scheduler.minimum-allocation-mb": 128,
            "yarn.scheduler.maximum-allocation-mb": NODE_MEMORY_MB,
            "yarn.nm.liveness-monitor.expiry-interval-ms": 30_000,
        }
        self.client_configuration = self._configure("client", common)
        self._configure("manager", common)
        self.manager = YarnDaemon(
            "resource-manager", RESOURCE_MANAGER, self._folder("manager"), java_home, "Transitioned to active state"
        )
        self.nodes: list[NodeManager] = []
        for number in range(nodes):
            folder = self._folder(f"node-{number}")
            self._configure(folder.name, {**common, **_node(folder, [ports.pop() for _ in range(3)])})
            self.nodes.append(
                NodeManager(
                    f"node-manager-{number}", NODE_MANAGER, folder, java_home, "Registered with ResourceManager"
                )
            )

    def start(self) -> Self:
        self.manager.start()
        for node in self.nodes:
            node.start()
        return self

    def executors(self) -> list[int]:
        return [pid for node in self.nodes for pid in node.executors()]

    def python_workers(self) -> list[int]:
        return [pid for node in self.nodes for pid in node.python_workers()]

    def masters(self) -> list[int]:
        return [pid for node in self.nodes for pid in node.masters()]

    def applications(self) -> dict[str, str]:
        """The state of each application by its id, as the resource manager has logged it."""
        assert self.manager.process is not None
        return dict(STATE_CHANGE.findall(self.manager.process.output()))

    def end_application(self, application: str) -> None:
        """As `yarn application -kill` does."""
        command = self.manager.command_of(CLIENT, self.client_configuration)
        subprocess.run([*command, "application", "-kill", application], check=True, capture_output=True)

    def output_of(self, name: str) -> str:
        """The logs of this name (stdout, stderr) of all containers, the oldest container first."""
        found = [file for node in self.nodes for file in node.logs.glob(f"*/*/{name}")]
        return "".join(file.read_text(errors="replace") for file in sorted(found, key=lambda file: file.parent.name))

    def close(self, *, keep: bool = False) -> None:
        for node in self.nodes:
            node.kill()
        self.manager.kill()
        self.folder.close(keep=keep)

    def _configure(self, name: str, site: Mapping[str, object]) -> Path:
        """A folder of configuration files."""
        folder = self._folder(name) / "conf"
        folder.mkdir(exist_ok=True)
        scratch = self._folder(name) / "scratch"
        core = {"fs.defaultFS": "file:///", "hadoop.tmp.dir": scratch, "hadoop.security.authentication": "simple"}
        for file, properties in (("core-site", core), ("yarn-site", site), ("capacity-scheduler", QUEUES)):
            (folder / f"{file}.xml").write_text(_xml(properties))
        (folder / "log4j.properties").write_text(LOG4J)
        return folder

    def _folder(self, name: str) -> Path:
        folder = self.folder.path / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def pack_spark_jars(target: Path) -> None:
    """Write Spark's jars into an archive for `spark.yarn.archive`. They are compressed already."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for jar in sorted((spark_home() / "jars").glob("*.jar")):
            archive.write(jar, jar.name)


def _node(folder: Path, ports: Sequence[int]) -> dict[str, object]:
    names = ("address", "localizer.address", "webapp.address")
    return {
        **{f"yarn.nodemanager.{name}": _address(port) for name, port in zip(names, ports, strict=True)},
        "yarn.nodemanager.local-dirs": folder / "local",
        "yarn.nodemanager.log-dirs": folder / "logs",
        "yarn.nodemanager.resource.memory-mb": NODE_MEMORY_MB,
        "yarn.nodemanager.resource.cpu-vcores": NODE_CORES,
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 99,
        "yarn.nodemanager.sleep-delay-before-sigkill.ms": 1000,
    }


def _address(port: int) -> str:
    return f"{LOCALHOST}:{port}"


def _xml(properties: Mapping[str, object]) -> str:
    lines = [
        f"<property><name>{name}</name><value>{escape(str(value))}</value></property>"
        for name, value in properties.items()
    ]
    return "\n".join(["<configuration>", *lines, "</configuration>", ""])


def _is_running(process: psutil.Process, program: str, word: str) -> bool:
    with suppress(psutil.NoSuchProcess):
        command = process.cmdline()
        return bool(command) and program in command[0].rpartition("/")[2] and any(word in part for part in command)
    return False
