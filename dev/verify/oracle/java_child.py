"""A Java class of dev/verify/oracle/java beside Cassandra's own jars, a long-lived child that answers lines."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

from dev.local_stack.java.compiler import compile_java
from dev.local_stack.java.jars import install
from dev.local_stack.java.runtime import find_java

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dev.local_stack.servers.cassandra_versions import CassandraVersion

FOLDER = Path(__file__).with_name("java")
# The compiler knows no wildcards, and beside all of Cassandra's jars it does not find java.lang.
COMPILED_AGAINST = ("cassandra-all", "jackson", "guava")


class JvmDiedError(AssertionError):
    """The child has ended by itself."""


class JavaChild:
    """A context manager: compiles the sources and starts the first one's class; what it logs is in `log`."""

    def __init__(
        self,
        version: CassandraVersion,
        sources: Sequence[Path],
        *,
        options: Sequence[str] = (),
        class_path: Sequence[Path] = (),
    ) -> None:
        self._version = version
        self._sources = sources
        self._options = options
        self._class_path = class_path

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="java-child-")
        folder = Path(self._folder.name)
        self.log = folder / "log"
        jars = install(self._version.jars)
        libraries = [jar for name in COMPILED_AGAINST for jar in jars.glob(f"{name}-*.jar")]
        compile_java(self._sources, folder, level=self._version.java, libraries=libraries)
        command = [str(find_java(self._version.java).executable), *self._version.module_options(), *self._options]
        command += [f"-Djava.io.tmpdir={folder}"]
        command += ["-cp", os.pathsep.join([str(folder), *map(str, self._class_path), f"{jars}/*"])]
        with self.log.open("wb") as log:
            self._child = subprocess.Popen(
                [*command, self._sources[0].stem],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                encoding="utf-8",
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._child.communicate()
        self._folder.cleanup()

    def restart(self) -> None:
        """A new child, in place of one that has ended."""
        self.__exit__()
        self.__enter__()

    def send_line(self, line: str) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(line + "\n")
        self._child.stdin.flush()

    def answer(self) -> str:
        """The next line of what it says, without its end."""
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise JvmDiedError(f"the JVM has died with {self._child.wait()}: {self.log.read_text()[-2000:]}")
        return line.removesuffix("\n")
