"""Debezium's JDBC sink into PostgreSQL, in a JVM of the test's own: no Kafka Connect, and no Kafka."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import psycopg
from py4j.protocol import Py4JJavaError

from dev.local_stack.java.compiler import compile_java
from dev.local_stack.java.jars import class_path, install
from dev.local_stack.java.peer_jars import DEBEZIUM_JDBC
from tests.support.schematizer.java_gateway import java_gateway

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

    from tests.support.consumers.messages import Encoded

_SOURCE = Path(__file__).with_name("JdbcSinkRun.java")
DECLARATION = Path(__file__).parent / "declarations" / "jdbc.properties"
"""The file that docs/guides/consumers/jdbc.md shows."""


def settings() -> dict[str, str]:
    lines = (line.partition("=") for line in DECLARATION.read_text().splitlines())
    return {"name": "sink", **{name: value for name, _, value in lines}}


class SinkError(Exception):
    """The sink's task has failed."""


class JdbcSinks:
    """A JVM with the sink's classes. A context manager."""

    def __init__(self, folder: Path, host: str, port: int, options: Sequence[str] = ()) -> None:
        """options: more of the JVM's."""
        self._classes, self._host, self._port = folder / "classes", host, port
        self._options = options

    def __enter__(self) -> Self:
        jars = install(DEBEZIUM_JDBC)
        shutil.rmtree(self._classes, ignore_errors=True)
        compile_java([_SOURCE], self._classes, level=17, libraries=sorted(jars.glob("*.jar")))
        self.gateway = java_gateway(class_path(DEBEZIUM_JDBC, self._classes), *self._options)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gateway.shutdown()

    def run(self, database: str, topic: str, batches: Iterable[list[Encoded]]) -> float:
        """Write a topic's messages into the table of its name, batch by batch. SinkError if the task fails.

        Returns how many seconds the sink took.
        """
        sink = self.gateway.jvm.JdbcSinkRun()
        address = {
            "connection.url": f"jdbc:postgresql://{self._host}:{self._port}/{database}",
            "connection.username": "test",
            "connection.password": "test",
        }
        offset, nanoseconds = 0, 0
        try:
            sink.start({**settings(), **address, "topics": topic}, topic)
            for batch in batches:
                for message in batch:
                    sink.add(topic, offset, message.key_schema, message.key, message.value_schema, message.value)
                    offset += 1
                nanoseconds += sink.put()
        except Py4JJavaError as error:
            raise SinkError(causes(error.java_exception)) from None
        finally:
            sink.stop()
        return nanoseconds / 1e9

    def rows(self, database: str, statement: str) -> list[tuple[Any, ...]]:
        address = f"postgresql://test@{self._host}:{self._port}/{database}"
        with psycopg.connect(address) as connection:
            return connection.execute(statement.encode()).fetchall()


def causes(thrown: Any) -> str:  # noqa: ANN401 - py4j's handle
    """The messages of an exception and of what caused it, the innermost first."""
    found: list[str] = []
    while thrown is not None and len(found) < 10:
        found.insert(0, str(thrown.getMessage()))
        thrown = thrown.getCause()
    return " <- ".join(dict.fromkeys(found))
