"""Apache Avro for Java, which Confluent's registry uses, behind a JVM of the test's own: the judge of ours.

The jars come with PySpark.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from local_stack.java.runtime import find_java

JavaSchema = Any
"""py4j's handle of an org.apache.avro.Schema."""

JARS = Path(pyspark.__file__).parent / "jars"


class JavaAvro:
    """A context manager."""

    def __enter__(self) -> Self:
        (py4j_jar,) = JARS.glob("py4j-*.jar")
        port, token = launch_gateway(
            jarpath=str(py4j_jar),
            classpath=f"{JARS}/*",
            java_path=str(find_java(17).executable),
            javaopts=["-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"],
            die_on_exit=True,
            enable_auth=True,
        )
        parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
        self._gateway = JavaGateway(gateway_parameters=parameters)
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
