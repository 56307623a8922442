"""Produces the values of a source by their schema: the service names the topic, and no program does."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient

from cdc_common.clients.by_schema.kafka import ANSWER_SECONDS, ensure_topic, is_passing
from cdc_common.clients.by_schema.messages import (
    AvroSchema,
    Encoder,
    MisfitError,
    schema_text,
)
from cdc_common.clients.by_schema.repeated import Announcement, Repeated
from cdc_common.clients.kafka import LIBRDKAFKA_LOGGER
from cdc_common.clients.kafka_errors import explain
from cdc_common.clients.registry.errors import not_found
from cdc_common.clients.registry.kinds import Part, Status

if TYPE_CHECKING:
    from types import TracebackType

    from cdc_common.clients.by_schema.kafka import Service
    from cdc_common.clients.registry.schematizer import SchematizerClient

OnDelivery: TypeAlias = Callable[[KafkaError | None, Message], None]

_ROOM_SECONDS = 0.5
_ABORTED = ("_PURGE_INFLIGHT", "_PURGE_QUEUE")  # by the owner of the transaction
# The defaults of Java's producers, so that both put a key into the same partition.
_DEFAULTS: Mapping[str, Any] = {"enable.idempotence": True, "partitioner": "murmur2_random"}
_logger = logging.getLogger(__name__)  # the program's own: it decides what is shown


class _Target(NamedTuple):
    """The topic and encoders for values. `key`: None for keys without a schema."""

    topic: str
    value: Encoder
    key: Encoder | None


class SchemaProducer:
    """Several threads may use one.

    The service is asked once more every `refresh_seconds`: if the answer is another topic, the next messages go there.
    While the service is away, they go where they went. To start, it must answer.
    """

    def __init__(  # noqa: PLR0913 - settings by keyword
        self,
        client: SchematizerClient,
        kafka: Producer | Mapping[str, Any],
        service: Service,
        *,
        namespace: str,
        source: str,
        schema: AvroSchema | int,
        key: AvroSchema | None = None,
        refresh_seconds: float = 30.0,
    ) -> None:
        """`kafka`: settings of librdkafka, with which missing topics are made too, as the broker's defaults say; or a
        producer, whose owner sees to its topics and transactions. `schema`: of the values, which is registered; or the
        id of one that the source has. `key`: the schema of the keys, to be registered with it.

        RegistryRequestError, KafkaException; MisfitError for what is no schema.
        """
        self._client, self._service, self._source = client, service, (namespace, source)
        self._admin: AdminClient | None = None
        if isinstance(kafka, Mapping):
            self._admin = AdminClient({**kafka, "log_level": 0})
            kafka = Producer({**_DEFAULTS, "logger": LIBRDKAFKA_LOGGER, **kafka})
        self._kafka: Producer = kafka
        self._failure: KafkaError | None = None
        self._lock = Lock()
        self._wanted: tuple[AvroSchema | int, AvroSchema | None] = schema, key
        self._target = self._find_target()
        self._announcement = Announcement()
        seconds = min(refresh_seconds, service.expected_frequency_seconds)
        self._repeated = Repeated(f"producer of {namespace}/{source}", self._refresh, seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def topic(self) -> str:
        """Return the topic of the next message, for logs and metrics."""
        return self._target.topic

    def set_schema(self, schema: AvroSchema | int, key: AvroSchema | None = None) -> None:
        """Register another schema of the source: the next message is under it, in its topic. Errors as of the start."""
        with self._lock:
            before = self._wanted
            self._wanted = schema, key
            try:
                self._target = self._find_target(self._target)
            except BaseException:
                self._wanted = before
                raise

    def produce(self, value: object, key: object = None, on_delivery: OnDelivery | None = None) -> None:
        """Send a value, None for a tombstone. `key`: as its schema says; without one, text or bytes. Waits while
        librdkafka's queue is full.

        MisfitError. RegistryRequestError if the service has refused the schema since. Without `on_delivery`, flush
        raises what a delivery has failed with.
        """
        self._repeated.check()
        target = self._target
        encoded = None if value is None else target.value.encode(value)
        key_bytes = _plain_key(key) if target.key is None else target.key.encode(key)
        callback = on_delivery or self._note_failure
        while True:
            try:
                self._kafka.produce(target.topic, value=encoded, key=key_bytes, on_delivery=callback)
                break
            except BufferError:
                self._kafka.poll(_ROOM_SECONDS)
        self._kafka.poll(0)

    def flush(self, seconds: float = ANSWER_SECONDS) -> None:
        """Wait until Kafka has all messages. TimeoutError; KafkaException of the first one that failed."""
        left = self._kafka.flush(seconds)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise KafkaException(failure)
        if left:
            raise TimeoutError(f"Kafka has not acknowledged {left} messages after {seconds:g} s.")

    def close(self) -> None:
        """Errors as of flush."""
        self._repeated.stop()
        self.flush()

    def _note_failure(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None and error.name() not in _ABORTED and self._failure is None:
            self._failure = error

    def _refresh(self) -> None:
        try:
            with self._lock:
                self._target = self._find_target(self._target)
        except KafkaException as error:
            if not is_passing(error.args[0]):
                raise
            _logger.warning("the next topic was not made: %s", explain(error.args[0]))
            return
        target, service = self._target, self._service
        self._announcement.tell(
            lambda: self._client.register_producer(
                service.team, service.name, target.topic, target.value.schema_id, service.expected_frequency_seconds
            )
        )

    def _find_target(self, before: _Target | None = None) -> _Target:
        """Ask the service. If it names another topic than before, that exists, unless others make the topics."""
        schema, key = self._wanted
        found = self._look_up(schema) if isinstance(schema, int) else self._register(schema, key)
        if before is None or found.topic != before.topic:
            _logger.info("values go to %s, under schema %s", found.topic, found.value.schema_id)
            if self._admin is not None:
                ensure_topic(self._admin, found.topic)
        return found

    def _register(self, schema: AvroSchema, key: AvroSchema | None) -> _Target:
        namespace, source = self._source
        text, key_text = schema_text(schema), None if key is None else schema_text(key)
        made = self._client.register(namespace, "avro", text, source=source, key=key_text)
        if key_text is None or made.key_schema_id is None:
            return _Target(made.topic, Encoder(made.schema_id, text), None)
        return _Target(made.topic, Encoder(made.schema_id, text), Encoder(made.key_schema_id, key_text))

    def _look_up(self, schema_id: int) -> _Target:
        """The newest topic of the source that takes this schema."""
        namespace, source = self._source
        for topic in reversed(self._client.assigned_topics(namespace, source, is_fresh=True)):
            if topic.status is not Status.READ_WRITE:
                continue
            schemas = [schema for schema in self._client.schemas(topic.name) if schema.status is Status.READ_WRITE]
            if any(schema.part is Part.VALUE and schema.schema_id == schema_id for schema in schemas):
                keys = [self._encoder(schema.schema_id) for schema in schemas if schema.part is Part.KEY]
                return _Target(topic.name, self._encoder(schema_id), keys[-1] if keys else None)
        raise not_found(
            f"No topic of {namespace}/{source} takes values of schema {schema_id}.",
            "Register it for the source, or set the status of topic and schema to read-write.",
        )

    def _encoder(self, schema_id: int) -> Encoder:
        return Encoder(schema_id, self._client.schema_text(schema_id))


def _plain_key(key: object) -> str | bytes | None:
    if key is None or isinstance(key, (str, bytes)):
        return key
    raise MisfitError(f"The key is of type {type(key).__name__}, and has no schema: give text or bytes, or the schema.")
