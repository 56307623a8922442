"""Consumes sources by schema: the service names the topics, also those that are added later."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from cdc_common.clients.by_schema.following import Followed
from cdc_common.clients.by_schema.kafka import is_passing
from cdc_common.clients.by_schema.messages import (
    AvroSchema,
    Decoder,
    MisfitError,
    schema_text,
)
from cdc_common.clients.by_schema.repeated import Announcement, Repeated
from cdc_common.clients.kafka import LIBRDKAFKA_LOGGER
from cdc_common.clients.registry.errors import RegistryRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

    from cdc_common.clients.by_schema.kafka import Service
    from cdc_common.clients.registry.schematizer import SchematizerClient
    from cdc_common.clients.registry.views import Topic

_POLL_SECONDS = 1.0
_DEFAULTS: Mapping[str, Any] = {
    "partition.assignment.strategy": "cooperative-sticky",  # a topic that is added stops no other one
    "topic.metadata.refresh.interval.ms": 10_000,  # a topic may be assigned before it is made
}
# Offsets are stored once a message is processed, and stored ones are committed. A topic that is added is read whole.
_NEEDED: Mapping[str, Any] = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": True,
    "enable.auto.offset.store": False,
}
_logger = logging.getLogger(__name__)  # the program's own: it decides what is shown


@dataclass(frozen=True, slots=True)
class Received:
    """A message of a source."""

    # The source's namespace.
    namespace: str
    # The source's name.
    source: str
    # The key, decoded if the topic has a schema of keys, otherwise as bytes.
    key: Any
    # The decoded value; None for a tombstone.
    value: Any
    # The id of the schema that the value was written with; None for a tombstone.
    schema_id: int | None
    # The message as the Kafka client gave it.
    message: Message


class SchemaConsumer:
    """Read messages at least once: a message counts as processed, and is committed, when the next one is asked for.
    Order holds within a partition of a topic, not between a source's topics. Only one thread may use it.

    The service is asked for the topics every `refresh_seconds`. While the service is away, known topics and schemas are
    still read, and a message under an unknown schema waits. To start, the service must answer.
    """

    def __init__(  # noqa: PLR0913 - settings by keyword
        self,
        client: SchematizerClient,
        settings: Mapping[str, Any],
        service: Service,
        *,
        sources: Sequence[tuple[str, str]] = (),
        data_target: str | None = None,
        schema: AvroSchema | int | None = None,
        refresh_seconds: float = 30.0,
    ) -> None:
        """Either `sources` (namespace and name), or a `data_target`, or a `schema` by its id, for the sources that have
        it. `schema`: the reader's; without it, values are as they were written. `settings`: of librdkafka, with a
        group.id.

        RegistryRequestError, also if a source has no topic; KafkaException; ValueError.
        """
        self._client, self._service, self._group = client, service, str(settings.get("group.id", ""))
        config = _config(settings)
        schema_id = schema if isinstance(schema, int) else None
        self._followed = Followed(client, sources, data_target, schema_id)
        self._decoder = Decoder(client, _reader(client, schema))
        self._keys = Decoder(client)
        self._has_keys: dict[str, bool] = {}
        self._topics: Mapping[str, Topic] = {}
        self._wanted: list[str] = []
        self._look()
        self._subscribed: list[str] = []
        self._last: Message | None = None
        self._consumer = Consumer({"logger": LIBRDKAFKA_LOGGER, **config})
        self._announcement = Announcement()
        seconds = min(refresh_seconds, service.expected_frequency_seconds)
        self._repeated = Repeated(f"consumer of the group {self._group}", self._refresh, seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Received]:
        """Yield messages without end. Errors as of poll."""
        while True:
            received = self.poll()
            if received is not None:
                yield received

    def poll(self, seconds: float = _POLL_SECONDS) -> Received | None:
        """The next message; None if none came in this time. The one before is processed.

        MisfitError for a message that cannot be read: the next call goes on after it. KafkaException.
        RegistryRequestError if the service refuses.
        """
        self._finish()
        self._repeated.check()
        if not self._subscribe():
            time.sleep(seconds)
            return None
        message = self._consumer.poll(seconds)
        if message is None:
            return None
        error = message.error()
        if error is None:
            return self._received(message)
        if not is_passing(error):
            raise KafkaException(error)
        return None

    def commit(self) -> None:
        """Count what was received as processed; returns when Kafka has all that is. KafkaException."""
        self._finish()
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._NO_OFFSET:  # noqa: SLF001 - librdkafka's own: nothing is stored
                raise

    def close(self) -> None:
        """Commits what is processed. The message received last is not, unless `commit` was called after it."""
        self._repeated.stop()
        self._consumer.close()

    def _received(self, message: Message) -> Received | None:
        where = f"{message.topic()} [{message.partition()}] at offset {message.offset()}"
        topic = self._topics[message.topic() or ""]
        try:
            key = self._decoded_key(topic.name, message.key())
            value = message.value()
            schema_id, decoded = (None, None) if value is None else self._decoder.decode(bytes(value))
        except MisfitError as error:
            self._last = message
            raise MisfitError(f"{where}: {error}") from error
        except RegistryRequestError as error:
            self._return(message)
            if not error.is_retried:
                raise
            _logger.warning("%s waits for the registry: %s", where, error)
            return None
        self._last = message
        return Received(topic.namespace, topic.source, key, decoded, schema_id, message)

    def _decoded_key(self, topic: str, key: str | bytes | None) -> Any:  # noqa: ANN401 - what the schema says
        if key is None:
            return None
        has_keys = self._has_keys.get(topic)
        if has_keys is None:
            has_keys = any(schema.part.value == "key" for schema in self._client.schemas(topic))
            self._has_keys[topic] = has_keys
        data = key.encode() if isinstance(key, str) else key
        return self._keys.decode(data)[1] if has_keys else data

    def _finish(self) -> None:
        """Store the offset after the last message."""
        message, self._last = self._last, None
        if message is not None:
            self._owned(lambda: self._consumer.store_offsets(message))

    def _return(self, message: Message) -> None:
        """Kafka gives it once more."""
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        self._owned(lambda: self._consumer.seek(TopicPartition(topic, partition, offset)))

    def _owned(self, act: Callable[[], object]) -> None:
        """Call `act`. Do nothing if the partition has gone to another consumer, which gets the message too."""
        try:
            act()
        except KafkaException as error:
            if error.args[0].code() != KafkaError._STATE:  # noqa: SLF001 - librdkafka's own: not assigned
                raise

    def _subscribe(self) -> bool:
        """Subscribe to the topics as they are now; return whether there are some."""
        wanted = self._wanted
        if wanted != self._subscribed:
            _logger.info("the group %s reads %s", self._group, wanted)
            if wanted:
                self._consumer.subscribe(wanted)
            else:
                self._consumer.unsubscribe()
            self._subscribed = wanted
        return bool(wanted)

    def _refresh(self) -> None:
        self._look()
        service = self._service
        for topic in self._wanted:
            register = partial(self._client.register_consumer, service.team, service.name, topic, self._group)
            self._announcement.tell(partial(register, service.expected_frequency_seconds))

    def _look(self) -> None:
        """Ask which topics there are. What is known of topics that have gone stays: their messages may be under way."""
        topics = {topic.name: topic for topic in self._followed.topics()}
        self._topics = {**self._topics, **topics}
        self._wanted = sorted(topics)


def _config(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the consumer's settings. ValueError for settings with which messages could be lost."""
    if not settings.get("group.id"):
        raise ValueError("The settings have no group.id: name the consumer group.")
    for name, needed in _NEEDED.items():
        if settings.get(name, needed) != needed:
            raise ValueError(f"{name} is {settings[name]!r}, and must be {needed!r}: messages could be lost.")
    return {**_DEFAULTS, **settings, **_NEEDED}


def _reader(client: SchematizerClient, schema: AvroSchema | int | None) -> str | None:
    if isinstance(schema, int):
        return client.schema_text(schema)
    return None if schema is None else schema_text(schema)
