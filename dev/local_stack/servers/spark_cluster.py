"""A standalone Spark cluster as child processes: a master and workers of PySpark's own jars.

Its executors get nothing of this project from it: neither PYTHONPATH nor our Python, only what a job brings along.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Self

import psutil

from dev.local_stack.java.runtime import find_java
from dev.local_stack.process.folders import ServerFolder
from dev.local_stack.process.lifecycle import Managed, Restartable
from dev.local_stack.process.network import LOCALHOST, accepts, free_ports
from dev.local_stack.process.processes import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Callable

JAVA = 17
DAEMON_HEAP = "256m"
WORKER_MEMORY = "2g"
EXECUTOR = "CoarseGrainedExecutorBackend"
PYTHON_WORKER = "pyspark.daemon"


def spark_home() -> Path:
    """The folder of PySpark's package, which is a Spark installation without the scripts of a cluster."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


class SparkServer(Restartable[ChildProcess]):
    """A master or a worker; `start` again after a stop or kill goes on at the same port."""

    def __init__(self, name: str, folder: Path, arguments: list[str], java_home: Path, ready: str) -> None:
        """`arguments`: the class and its arguments; `ready`: what it logs once it works."""
        self.name = name
        self.folder = folder
        self.work_directory = folder / "work"
        self._command = [str(spark_home() / "bin" / "spark-class"), *arguments]
        self._java_home = java_home
        self._ready = ready

    def launch(self) -> ChildProcess:
        log = self.folder / f"{self.name}.log"
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.folder),
            "JAVA_HOME": str(self._java_home),
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": LOCALHOST,
            "SPARK_LOCAL_DIRS": str(self.folder / "scratch"),
            "SPARK_DAEMON_MEMORY": DAEMON_HEAP,
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC",
        }
        return ChildProcess(self.name, self._command, log=log, env=environment, cwd=self.folder)

    def is_ready(self) -> bool:
        return self._ready in self._running().output()


def executors(of: Restartable[ChildProcess]) -> list[int]:
    """Pids of the JVMs of the executors that a worker, or a job in a local cluster, has started."""
    return _running_with(of, EXECUTOR)


def python_workers(of: Restartable[ChildProcess]) -> list[int]:
    """Pids of the Python processes of these executors: each has a daemon, which forks workers off."""
    return _running_with(of, PYTHON_WORKER)


def _running_with(of: Restartable[ChildProcess], word: str) -> list[int]:
    members = [] if of.process is None else of.process.members()
    return [pid for pid in members if any(word in part for part in _command_line(pid))]


class SparkCluster(Managed):
    """A master at `url` and workers of one core each."""

    def __init__(self, workers: int = 2, *, report: Callable[[str], None] = print) -> None:
        self.folder = ServerFolder("spark")
        self.port, *pages = free_ports(2 + workers)
        java_home = find_java(JAVA, report).home
        at = ["--host", LOCALHOST, "--port", str(self.port), "--webui-port", str(pages[0])]
        master = ["org.apache.spark.deploy.master.Master", *at]
        self.master = SparkServer(
            "master", self._make_folder("master"), master, java_home, "I have been elected leader"
        )
        self.workers = [
            SparkServer(
                f"worker-{number}",
                folder := self._make_folder(f"worker-{number}"),
                self._worker_arguments(folder / "work", page),
                java_home,
                "Successfully registered with master",
            )
            for number, page in enumerate(pages[1:])
        ]

    @property
    def url(self) -> str:
        return f"spark://{LOCALHOST}:{self.port}"

    def start(self) -> Self:
        self.master.start()
        assert accepts(LOCALHOST, self.port)
        for worker in self.workers:
            worker.start()
        return self

    def close(self, *, keep: bool = False) -> None:
        for server in (*self.workers, self.master):
            server.kill()
        self.folder.close(keep=keep)

    def _worker_arguments(self, work: Path, page: int) -> list[str]:
        size = ["--cores", "1", "--memory", WORKER_MEMORY, "--work-dir", str(work), "--webui-port", str(page)]
        return ["org.apache.spark.deploy.worker.Worker", "--host", LOCALHOST, *size, self.url]

    def _make_folder(self, name: str) -> Path:
        folder = self.folder.path / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def _command_line(pid: int) -> list[str]:
    try:
        return psutil.Process(pid).cmdline()
    except psutil.Error:  # it has ended
        return []
