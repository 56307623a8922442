"""Cassandra's own CommitLogReader and PartitionUpdate.serializer behind one long-lived JVM that speaks JSON lines.

`CommitLogOracle.java` tells the commands. It reads the schema of a stopped node from that node's own files.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, Self

from local_stack.jars import install
from local_stack.java import find_java
from tests.oracle.cassandra_types import COMPILER, SOURCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from local_stack.cassandra import CassandraNode

PROGRAM = "CommitLogOracle"


class CommitLogOracle:
    """A context manager; `classes` is a folder for what is compiled."""

    def __init__(self, classes: Path, node: CassandraNode) -> None:
        release = node.cluster.version
        self._classes = classes
        self._jars = install(release.jars)
        self._java = str(find_java(release.java).executable)
        configuration = (node.folder / "conf" / "cassandra.yaml").as_uri()
        self._options = [*release.module_options(), f"-Dcassandra.config={configuration}", "-Xmx512m"]
        self._options += [f"-Dcassandra.storagedir={node.folder}", f"-Djava.io.tmpdir={classes}"]
        self._options += [
            f"-Dcassandra-rackdc.properties={(node.folder / 'conf/cassandra-rackdc.properties').as_uri()}"
        ]

    def __enter__(self) -> Self:
        self._compile()
        self._log = (self._classes / "log").open("wb")
        self._child = subprocess.Popen(
            [self._java, *self._options, "-cp", f"{self._classes}{os.pathsep}{self._jars}/*", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            encoding="utf-8",
        )
        assert self._answer() == {"ready": True}
        return self

    def _compile(self) -> None:
        (compiler,) = install(COMPILER).glob("ecj-*.jar")
        # The compiler knows no wildcards, and beside all of Cassandra's jars it does not find java.lang.
        needed = [
            str(jar) for name in ("cassandra-all", "jackson", "guava") for jar in self._jars.glob(f"{name}-*.jar")
        ]
        options = ["-17", "-nowarn", "-classpath", os.pathsep.join(needed), "-d", str(self._classes)]
        source = SOURCE.with_name(f"{PROGRAM}.java")
        compiled = subprocess.run(
            [self._java, "-jar", str(compiler), *options, str(source)], capture_output=True, text=True, check=False
        )
        assert compiled.returncode == 0, compiled.stderr[:2000]

    def __exit__(self, *_: object) -> None:
        self._child.communicate()
        self._log.close()

    def segment(self, path: Path) -> Iterator[dict[str, Any]]:
        """What CommitLogReader says of the file: mutations and complaints."""
        self._command("segment", str(path))
        while "end" not in (answer := self._answer()):
            yield answer

    def update(self, version: int, update: bytes, write_version: int | None = None) -> dict[str, Any]:
        """What PartitionUpdate.serializer reads, and writes again (`again`), in another version if one is given."""
        self._command("update", str(version), str(write_version or version), update.hex())
        return self._answer()

    def _command(self, *words: str) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write("\t".join(words) + "\n")
        self._child.stdin.flush()

    def _answer(self) -> dict[str, Any]:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        assert line, f"the JVM has died: {self._log.name}"
        answer: dict[str, Any] = json.loads(line)
        return answer
