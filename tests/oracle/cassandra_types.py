"""Cassandra's own types, comparators and counters behind one long-lived JVM that speaks JSON lines.

`CassandraTypes.java` tells the requests. It is compiled by the Eclipse compiler, for a JRE has none of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from local_stack.jars import JarSet, install
from local_stack.java import find_java
from local_stack.versions import VERSIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cassandra_storage.cql_types import UserTypeDefinition

SOURCE = Path(__file__).with_name("CassandraTypes.java")
COMPILER = JarSet("ecj-3.40.0", ("org.eclipse.jdt:ecj:3.40.0",), download_mb=4)
RELEASE = VERSIONS["5.0"]


def compile_java(source: Path, java: str, jars: Path, classes: Path) -> None:
    """Compiles one file that needs Cassandra's classes, Jackson and Guava at most."""
    (compiler,) = install(COMPILER).glob("ecj-*.jar")
    # The compiler knows no wildcards, and beside all of Cassandra's jars it does not find java.lang.
    needed = [str(jar) for name in ("cassandra-all", "jackson", "guava") for jar in jars.glob(f"{name}-*.jar")]
    options = ["-17", "-nowarn", "-classpath", os.pathsep.join(needed), "-d", str(classes)]
    compiled = subprocess.run(
        [java, "-jar", str(compiler), *options, str(source)], capture_output=True, text=True, check=False
    )
    assert compiled.returncode == 0, compiled.stderr[:2000]


class CassandraTypes:
    """A context manager; `classes` is a folder for what is compiled."""

    def __init__(self, classes: Path, user_types: Mapping[str, UserTypeDefinition]) -> None:
        self._java = str(find_java(RELEASE.java).executable)
        self._classes = classes
        self._jars = install(RELEASE.jars)
        self._user_types = [
            {"name": one.name, "field_names": one.field_names, "field_types": one.field_types}
            for one in user_types.values()
        ]

    def __enter__(self) -> Self:
        compile_java(SOURCE, self._java, self._jars, self._classes)
        self._log = (self._classes / "log").open("wb")
        self._child = subprocess.Popen(
            [
                self._java,
                *RELEASE.module_options(),
                "-cp",
                f"{self._classes}{os.pathsep}{self._jars}/*",
                "CassandraTypes",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            encoding="utf-8",
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._child.communicate()
        self._log.close()

    def ask(self, op: str, **request: object) -> dict[str, Any]:
        """The answer; AssertionError with Cassandra's own message if it refuses the request as a whole."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps({"op": op, "user_types": self._user_types, **request}) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        assert line, f"the JVM has died: {self._log.name}"
        answer: dict[str, Any] = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer


def hexes(values: Sequence[bytes | None]) -> list[str | None]:
    return [None if value is None else value.hex() for value in values]
