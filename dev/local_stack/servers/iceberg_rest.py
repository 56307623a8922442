"""Apache Iceberg's own REST server, as a child process: a catalog over SQLite whose tables lie in a folder."""

from __future__ import annotations

import os
import urllib.request
from typing import TYPE_CHECKING

from dev.local_stack.java.jars import class_path, install
from dev.local_stack.java.peer_jars import ICEBERG_CORE, ICEBERG_REST, SQLITE_JDBC
from dev.local_stack.java.runtime import find_java
from dev.local_stack.process.lifecycle import FolderServer
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.process.processes import ChildProcess
from dev.local_stack.servers.spark_cluster import spark_home

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JAVA = 17
HEAP_MIB = 192
SETS = (ICEBERG_CORE, ICEBERG_REST, SQLITE_JDBC)
HADOOP = "hadoop-client-*.jar"  # of PySpark: the server reads files with Hadoop's classes


class IcebergRestServer(FolderServer):
    """It asks for no credentials. Port and tables stay when it is stopped or killed."""

    start_seconds = 60.0

    def __init__(self, *, folder: Path | None = None, report: Callable[[str], None] = print) -> None:
        super().__init__("iceberg-rest", folder, report)
        (self.port,) = free_ports(1)

    @property
    def uri(self) -> str:
        return f"http://{LOCALHOST}:{self.port}"

    def launch(self) -> ChildProcess:
        """Install what is missing, and start the process. Raises CdcError."""
        for jars in SETS:
            install(jars, self.report)
        own = [class_path(jars) for jars in SETS]
        hadoop = [str(jar) for jar in sorted((spark_home() / "jars").glob(HADOOP))]
        command = [
            str(find_java(JAVA, self.report).executable),
            *(f"-Xmx{HEAP_MIB}m", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:TieredStopAtLevel=1"),
            *("-cp", os.pathsep.join([*own, *hadoop]), "org.apache.iceberg.rest.RESTCatalogServer"),
        ]
        environment = {
            **os.environ,
            "CATALOG_REST_PORT": str(self.port),
            "CATALOG_URI": f"jdbc:sqlite:{self.folder.path}/catalog.db",
            "CATALOG_JDBC_USER": "local",
            "CATALOG_WAREHOUSE": f"file://{self.folder.path}/warehouse",
        }
        return ChildProcess("iceberg-rest", command, log=self.log, cwd=self.folder.path, env=environment)

    def is_ready(self) -> bool:
        try:
            urllib.request.urlopen(f"http://{LOCALHOST}:{self.port}/v1/config", timeout=2).close()
        except OSError:
            return False
        return True
