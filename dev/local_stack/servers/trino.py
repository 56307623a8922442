"""Trino as a child process: one node, which reads tables of this machine's folders."""

from __future__ import annotations

import json
import shutil
import urllib.request
import zipfile
from typing import TYPE_CHECKING, Any

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.java.jars import install
from dev.local_stack.java.peer_jars import SQLITE_JDBC, TRINO
from dev.local_stack.java.runtime import MARKER, find_java
from dev.local_stack.process.lifecycle import FolderServer
from dev.local_stack.process.locks import locked
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.process.paths import local_folder
from dev.local_stack.process.processes import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

JAVA = 25
HEAP_MIB = 1536
PLUGINS = ("trino-hive", "trino-iceberg")
ANSWER_SECONDS = 600.0
FILES = {"fs.native-local.enabled": "true", "local.location": "/"}
"""The properties of a catalog whose files are in folders."""


class TrinoServer(FolderServer):
    """Catalogs are made by `add_catalog`, and forgotten when it stops."""

    start_seconds = 600.0  # on a busy machine

    def __init__(self, *, folder: Path | None = None, report: Callable[[str], None] = print) -> None:
        super().__init__("trino", folder, report)
        (self.port,) = free_ports(1)

    def launch(self) -> ChildProcess:
        """Install what is missing, and start the process. Raises CdcError."""
        home = unpacked(self.report)
        settings = {
            "coordinator": "true",
            "node-scheduler.include-coordinator": "true",
            "http-server.http.port": str(self.port),
            "discovery.uri": f"http://{LOCALHOST}:{self.port}",
            "plugin.dir": str(home / "plugin"),
            "catalog.management": "dynamic",
            "query.max-memory": "768MB",
            "query.max-memory-per-node": "768MB",
            "memory.heap-headroom-per-node": "300MB",
        }
        config = self.folder.path / "config.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        command = [
            str(find_java(JAVA, self.report).executable),
            *(f"-Xmx{HEAP_MIB}m", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:TieredStopAtLevel=1"),
            *("--sun-misc-unsafe-memory-access=allow", "--enable-native-access=ALL-UNNAMED"),
            *("--add-modules", "jdk.incubator.vector", "-Duser.timezone=UTC", f"-Dconfig={config}"),
            *("-Dnode.environment=local", "-Dnode.id=local", f"-Dnode.data-dir={self.folder.path}/data"),
            *("-cp", f"{home}/lib/*", "io.trino.server.TrinoServer"),
        ]
        return ChildProcess("trino", command, log=self.log, cwd=self.folder.path)

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{LOCALHOST}:{self.port}/v1/info", timeout=2) as answer:
                return json.load(answer)["starting"] is False
        except OSError:
            return False

    def add_catalog(self, name: str, connector: str, properties: Mapping[str, str]) -> None:
        """Add a catalog. Raises CdcError(SERVER_FAILED)."""
        words = ", ".join(f"\"{key}\" = '{value}'" for key, value in {**FILES, **properties}.items())
        self.query(f"CREATE CATALOG {name} USING {connector} WITH ({words})")

    def query(self, text: str) -> list[list[Any]]:
        """The rows of a query. Raises CdcError(SERVER_FAILED) with what Trino says."""
        request = urllib.request.Request(
            f"http://{LOCALHOST}:{self.port}/v1/statement", text.encode(), {"X-Trino-User": "local"}
        )
        answer = _answer(request)
        rows: list[list[Any]] = []
        while True:
            rows += answer.get("data", [])
            if "error" in answer:
                raise CdcError(Code.SERVER_FAILED, f"Trino refuses {text[:200]!r}: {answer['error']['message']}", "")
            if "nextUri" not in answer:
                return rows
            answer = _answer(answer["nextUri"])


def _answer(request: urllib.request.Request | str) -> dict[str, Any]:
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:  # noqa: S310 - of the server itself
        found: dict[str, Any] = json.load(answer)
    return found


def unpacked(report: Callable[[str], None]) -> Path:
    """The folder of Trino with its plugins, unpacked once. Raises CdcError."""
    jars, drivers = install(TRINO, report), install(SQLITE_JDBC, report)
    home = local_folder() / TRINO.name
    with locked(home):
        if not (home / MARKER).exists():
            fresh = home.with_name(f"{TRINO.name}.partial")
            shutil.rmtree(fresh, ignore_errors=True)
            shutil.unpack_archive(jars / "trino-server-core-476.tar.gz", fresh, filter="data")
            server = fresh / "trino-server-core-476"
            for plugin in PLUGINS:
                with zipfile.ZipFile(jars / f"{plugin}-476.zip") as found:  # shutil leaves names with `...` out
                    found.extractall(server / "plugin")
            for driver in drivers.glob("*.jar"):
                shutil.copy(driver, server / "plugin" / "trino-iceberg-476")
            (server / MARKER).touch()
            shutil.rmtree(home, ignore_errors=True)
            server.rename(home)
            fresh.rmdir()
    return home
