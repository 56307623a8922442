"""Confluent's Java client, as it is shaded in Flink's flink-sql-avro-confluent-registry, in a JVM of the test's own."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from py4j.protocol import Py4JJavaError

from dev.local_stack.java.jars import FLINK_REGISTRY, class_path, install
from tests.support.schematizer.java_gateway import JARS, java_gateway

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

CACHE = 100
JavaObject = Any
"""py4j's handle."""


class RestError(Exception):
    """A RestClientException."""

    def __init__(self, thrown: JavaObject) -> None:
        super().__init__(thrown.getMessage())
        self.status: int = thrown.getStatus()
        self.code: int = thrown.getErrorCode()


class JavaConfluent:
    """A context manager."""

    def __enter__(self) -> Self:
        install(FLINK_REGISTRY)
        logging = JARS.glob("slf4j-api-*.jar")  # which Flink's own programs have
        self._gateway = java_gateway(class_path(FLINK_REGISTRY, *logging))
        self._package = self._gateway.jvm.org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gateway.shutdown()

    def client(self, url: str, **settings: str) -> JavaObject:
        """A CachedSchemaRegistryClient that knows nothing yet; `settings` as Java names them, with _ for a dot."""
        configuration = {name.replace("_", "."): value for name, value in settings.items()}
        return self._package.schemaregistry.client.CachedSchemaRegistryClient(url, CACHE, configuration)

    def schema(self, text: str) -> JavaObject:
        """A ParsedSchema."""
        return self._package.schemaregistry.avro.AvroSchema(text)


@contextmanager
def rest_errors() -> Iterator[None]:
    """RestError instead of py4j's exception."""
    try:
        yield
    except Py4JJavaError as error:
        thrown = error.java_exception
        if thrown.getClass().getSimpleName() != "RestClientException":
            raise
        raise RestError(thrown) from error
