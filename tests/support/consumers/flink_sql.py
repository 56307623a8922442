"""Flink SQL over change topics, in a JVM of the test's own: its small cluster, Kafka's connector, the format's jar."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from py4j.protocol import Py4JJavaError

from dev.local_stack.java.compiler import compile_java
from dev.local_stack.java.jars import class_path, install
from dev.local_stack.java.peer_jars import FLINK
from tests.support.consumers.jdbc_sink import causes
from tests.support.consumers.sql_types import FLINK_TYPES
from tests.support.schematizer.java_gateway import java_gateway

if TYPE_CHECKING:
    from types import TracebackType

    from tests.support.consumers.typed_topic import Rows, TypedTopic

_SOURCE = Path(__file__).with_name("FlinkRun.java")
DECLARATION = Path(__file__).parent / "declarations" / "flink.sql"


class FlinkError(Exception):
    """A job has failed, or a statement is refused."""


class Flink:
    """A context manager."""

    def __init__(self, folder: Path) -> None:
        self._classes = folder / "classes"

    def __enter__(self) -> Self:
        self._gateway = java_gateway(class_path(FLINK, compile_run(self._classes)), "-Xmx768m", *OPENED)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gateway.shutdown()

    def rows(self, topic: TypedTopic, key: tuple[str, ...] = ("id",), *, declared_key: str = "") -> Rows:
        """The rows that all changes of a topic leave. declared_key: the columns of a PRIMARY KEY, as SQL.

        FlinkError if a job fails.
        """
        names = [field["name"] for field in topic.columns()]
        found: Rows = {}
        for kind, *values in self.changes(topic, ", ".join(map(quoted, names)), declared_key=declared_key):
            row = dict(zip(names, values, strict=True))
            at = json.dumps({name: row[name] for name in key})
            if kind in ("-U", "-D"):
                assert found.pop(at) == row, (kind, row)
            else:
                assert at not in found, (kind, row)
                found[at] = row
        return found

    def changes(self, topic: TypedTopic, columns: str, *, where: str = "TRUE", declared_key: str = "") -> list[Any]:
        """The changes of a SELECT: the kind (+I, -U, +U, -D) and the values of each. FlinkError if the job fails."""
        run = self._gateway.jvm.FlinkRun()
        try:
            run.execute(declaration(topic, declared_key))
            return [
                json.loads(text) for text in run.changes(f"SELECT {columns} FROM {quoted(topic.name)} WHERE {where}")
            ]
        except Py4JJavaError as error:
            raise FlinkError(causes(error.java_exception)) from None


def compile_run(classes: Path) -> Path:
    """Compile FlinkRun into a folder: the folder."""
    jars = install(FLINK)
    shutil.rmtree(classes, ignore_errors=True)
    compile_java([_SOURCE], classes, level=17, libraries=sorted(jars.glob("*.jar")))
    return classes


OPENED = ("--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED")
"""The options of Flink's own scripts, for its serializers."""


def declaration(topic: TypedTopic, declared_key: str = "") -> str:
    """The CREATE TABLE of a topic."""
    columns = [f"  {quoted(field['name'])} {FLINK_TYPES.of(field['type'])}" for field in topic.columns()]
    if declared_key:
        columns.append(f"  PRIMARY KEY ({declared_key}) NOT ENFORCED")
    return DECLARATION.read_text().format(
        table=topic.name, columns=",\n".join(columns), topic=topic.name, kafka=topic.kafka, registry=topic.registry
    )


def quoted(name: str) -> str:
    return f"`{name}`"
