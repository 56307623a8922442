"""Apache Avro for Java, which Confluent's registry uses, in a JVM of the test's own: it judges the project's code.

The jars come with PySpark.
"""

from __future__ import annotations

from typing import Any, Self

from py4j.protocol import Py4JJavaError

from tests.support.schematizer.java_gateway import JARS, java_gateway

JavaSchema = Any
"""py4j's handle of an org.apache.avro.Schema."""


class JavaAvro:
    """A context manager."""

    def __enter__(self) -> Self:
        self._gateway = java_gateway(f"{JARS}/*")
        self._avro = self._gateway.jvm.org.apache.avro
        return self

    def __exit__(self, *_: object) -> None:
        self._gateway.shutdown()

    def parse(self, text: str) -> JavaSchema | None:
        """A Schema, or None if Avro refuses the text."""
        try:
            return self._avro.Schema.Parser().parse(text)
        except Py4JJavaError:
            return None

    def can_read(self, reader: JavaSchema, writer: JavaSchema) -> bool | None:
        """None where Avro itself fails: a reader's field whose aliases match several fields of the writer."""
        try:
            check = self._avro.SchemaCompatibility.checkReaderWriterCompatibility(reader, writer)
        except Py4JJavaError:
            return None
        return str(check.getType().toString()) == "COMPATIBLE"
