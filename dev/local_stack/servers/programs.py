"""Starts our own programs as children, with their settings in the environment, and kills or stops them on request."""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dev.local_stack.java.runtime import find_java
from dev.local_stack.process.lifecycle import Restartable
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.process.paths import project_root
from dev.local_stack.process.processes import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SPARK_START_SECONDS = 600.0  # a dozen on an idle machine, minutes on a busy one
SPARK_JAVA = 17
READY_LINE = '"event": "ready"'  # what each program logs once it works
HTTP_SECONDS = 2.0
SPARK_PYTHONS = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")

Setting = str | int | float | bool | os.PathLike[str]


class Release(NamedTuple):
    """The code that a program runs from."""

    # The path of the Python.
    python: str
    # The folder of modules that come before those installed there; None for none.
    modules: Path | None
    # The settings (`table.key`) that it knows, and so the ones that it gets; None for all.
    settings: frozenset[str] | None = None


CHECKOUT = Release(sys.executable, project_root())


class Program(Restartable[ChildProcess]):
    """One of our programs; `start` again after a stop or kill goes on with its files.

    `settings` maps `table.key` to a value; nothing else that the caller's environment says about settings counts.
    `release` may be another one before each start.
    """

    stop_seconds = 15.0
    release = CHECKOUT

    def __init__(  # noqa: PLR0913 - settings by keyword
        self,
        name: str,
        arguments: Sequence[str],
        *,
        folder: Path,
        settings: Mapping[str, Setting],
        environment: Mapping[str, str] | None = None,
        start_seconds: float | None = None,
        is_ready: Callable[[Program], bool] | None = None,
    ) -> None:
        """`arguments` are Python's: `-m publisher run`. `is_ready`: by default the log has READY_LINE."""
        self.name = name
        self.arguments = tuple(arguments)
        self.folder = folder
        self.settings = dict(settings)
        self.environment = dict(environment or {})
        self.start_seconds = start_seconds or self.start_seconds
        self._is_ready = is_ready or (lambda program: READY_LINE in program.output())

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def pid(self) -> int:
        return self._running().pid

    def output(self) -> str:
        """Return what it logged since it was started last."""
        return self._running().output()

    def launch(self) -> ChildProcess:
        self.folder.mkdir(parents=True, exist_ok=True)
        return ChildProcess(self.name, self.command(), log=self.log, env=self._environment(), cwd=self.folder)

    def is_ready(self) -> bool:
        return self._is_ready(self)

    def command(self) -> list[str]:
        return [self.release.python, *self.arguments]

    def check(self) -> None:
        """Raises CdcError(SERVER_FAILED) with the log's end when it does not run."""
        if not self.is_running:
            raise self._running().failure(f"has ended with status {self._running().exit_status}")

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CDC_")}
        _, modules, known = self.release
        kept["PYTHONPATH"] = os.pathsep.join(filter(None, (str(modules or ""), kept.get("PYTHONPATH"))))
        settings = {name: value for name, value in self.settings.items() if known is None or name in known}
        # Not where the executors' Python comes with an archive.
        pythons = {name: self.release.python for name in SPARK_PYTHONS if self.environment.get(name) == sys.executable}
        return {**kept, "CDC_LOG__FORMAT": "json", **environment_of(settings), **self.environment, **pythons}


def environment_of(settings: Mapping[str, Setting]) -> dict[str, str]:
    """`publisher.poll_interval_ms` → `CDC_PUBLISHER__POLL_INTERVAL_MS`, values as text."""
    return {
        f"CDC_{name.replace('.', '__', 1).upper()}": str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in settings.items()
    }


def schematizer(folder: Path, port: int, settings: Mapping[str, Setting] | None = None) -> Program:
    """The schema registry at http://127.0.0.1:<port>, with its database in `folder`."""
    return Program(
        "schematizer",
        ("-m", "schematizer", "serve"),
        folder=folder,
        settings={
            "schematizer.host": LOCALHOST,
            "schematizer.port": port,
            "schematizer.database_url": f"sqlite:///{folder / 'registry.db'}",
            "schematizer.operations_port": free_ports(1)[0],
            **(settings or {}),
        },
        is_ready=lambda _: _answers(f"http://{LOCALHOST}:{port}/subjects"),
    )


def publisher(
    folder: Path, node: str, cdc_raw: Path, settings: Mapping[str, Setting], name: str = "publisher"
) -> Program:
    """The publisher of the node at this address; `settings` as of Servers.settings(), and more."""
    own: dict[str, Setting] = {
        "node.cdc_raw_directory": cdc_raw,
        "publisher.state_directory": folder / f"{name}-state",
        "node.commitlog_directory": cdc_raw.parent / "commitlog",
        "publisher.operations_port": free_ports(1)[0],
    }
    return Program(
        name,
        ("-m", "publisher", "run"),
        folder=folder,
        settings={**own, **settings, "cassandra.contact_points": node},
    )


def filler(folder: Path, node: str, cdc_raw: Path, settings: Mapping[str, Setting], name: str = "filler") -> Program:
    """The filler of the node at this address; `settings` as of Servers.settings(), and more."""
    own: dict[str, Setting] = {
        "node.cdc_raw_directory": cdc_raw,
        "node.commitlog_directory": cdc_raw.parent / "commitlog",
        "filler.operations_port": free_ports(1)[0],
    }
    return Program(
        name,
        ("-m", "filler", "run"),
        folder=folder,
        settings={**own, **settings, "cassandra.contact_points": node},
    )


def materializer(
    folder: Path, settings: Mapping[str, Setting], *, report: Callable[[str], None] = print, name: str = "materializer"
) -> Program:
    """The Spark job; its Java comes from `local_stack`."""
    own: dict[str, Setting] = {
        "materializer.checkpoint_location": (folder / f"{name}-checkpoint").as_uri(),
        "materializer.state_directory": folder / f"{name}-state",
        "materializer.operations_port": free_ports(1)[0],
    }
    return Program(
        name,
        ("-m", "materializer", "run"),
        folder=folder,
        settings={**own, **settings},
        environment=spark_environment(folder, report),
        start_seconds=SPARK_START_SECONDS,
    )


def transformer(
    folder: Path, file: Path, settings: Mapping[str, Setting], *, report: Callable[[str], None] = print
) -> Program:
    """The Spark job of a transformers file."""
    return Program(
        "transformer",
        ("-m", "transformer", "run", str(file)),
        folder=folder,
        settings={"transformer.operations_port": free_ports(1)[0], **settings},
        environment=spark_environment(folder, report),
        start_seconds=SPARK_START_SECONDS,
    )


def archive(folder: Path, settings: Mapping[str, Setting], *, report: Callable[[str], None] = print) -> Program:
    """The Spark job that keeps topics as files, below `folder`."""
    own: dict[str, Setting] = {
        "archive.location": str(folder / "lake"),
        "archive.spool_directory": folder / "spool",
        "archive.operations_port": free_ports(1)[0],
    }
    return Program(
        "archive",
        ("-m", "archive", "run"),
        folder=folder,
        settings={**own, **settings},
        environment=spark_environment(folder, report),
        start_seconds=SPARK_START_SECONDS,
    )


def warehouse(folder: Path, settings: Mapping[str, Setting], *, report: Callable[[str], None] = print) -> Program:
    """The Spark job that loads topics, in one worker process."""
    return Program(
        "warehouse",
        ("-m", "warehouse", "run"),
        folder=folder,
        settings={"warehouse.operations_port": free_ports(1)[0], "warehouse.spark_master": "local[1]", **settings},
        environment=spark_environment(folder, report),
        start_seconds=SPARK_START_SECONDS,
    )


def joinery(
    folder: Path, file: Path, settings: Mapping[str, Setting], *, report: Callable[[str], None] = print
) -> Program:
    """The Spark job of a joins file, in one worker process."""
    own: dict[str, Setting] = {
        "joinery.checkpoint_location": (folder / "checkpoint").as_uri(),
        "joinery.state_directory": folder / "state",
        "joinery.operations_port": free_ports(1)[0],
        "joinery.spark_master": "local[1]",
        "kafka.change_partitions": 1,
    }
    return Program(
        "joinery",
        ("-m", "joinery", "run", str(file)),
        folder=folder,
        settings={**own, **settings},
        environment=spark_environment(folder, report),
        start_seconds=SPARK_START_SECONDS,
    )


def spark_environment(folder: Path, report: Callable[[str], None] = print) -> dict[str, str]:
    """Return what PySpark must find in the environment: Java, this Python, and where scratch files go."""
    return {
        "JAVA_HOME": str(find_java(SPARK_JAVA, report).home),
        **dict.fromkeys(SPARK_PYTHONS, sys.executable),
        "SPARK_LOCAL_IP": LOCALHOST,
        "SPARK_LOCAL_DIRS": str(folder / "spark"),
        "SPARK_WORKER_DIR": str(folder / "spark-work"),
    }


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=HTTP_SECONDS):  # noqa: S310 - our own http address
            return True
    except (urllib.error.URLError, OSError):
        return False
