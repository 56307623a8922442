"""Sends the registrations of producers and consumers to Kafka: the one module that imports confluent_kafka."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_common.clients.kafka import LIBRDKAFKA_LOGGER, client_config
from cdc_common.clients.kafka_admin import create_topic
from cdc_common.clients.kafka_errors import explain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confluent_kafka import Message

    from cdc_common.settings import KafkaSettings
    from schematizer.catalogue.outbox import OutboxMessage

_SEND_SECONDS = 30


class SendError(Exception):
    """Kafka did not take all messages; the message says why."""


class RegistrationTopic:
    """A compacted topic with one partition: its key is who registered for which topic. One thread uses it. CdcError
    CONFIG_INVALID if no client can be made with the settings.
    """

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        self._settings = settings
        self._config: dict[str, Any] = client_config(settings)
        self._topic = topic
        self._producer: Producer | None = None

    def send(self, messages: Sequence[OutboxMessage]) -> list[int]:
        """The ids of the messages that Kafka has; SendError if it has none. The topic is made if it is missing."""
        try:
            producer = self._connected()
        except KafkaException as error:
            raise SendError(explain(error.args[0])) from error
        sent: list[int] = []
        refused: list[str] = []

        def report(message_id: int, error: KafkaError | None, _sent: Message) -> None:
            if error is None:
                sent.append(message_id)
            else:
                refused.append(explain(error))

        for message in messages:
            try:
                producer.produce(
                    self._topic,
                    key=message.key.encode(),
                    value=message.value.encode(),
                    on_delivery=partial(report, message.id),
                )
            except KafkaException as error:
                refused.append(explain(error.args[0]))
            except BufferError as error:
                refused.append(str(error))
        producer.flush(_SEND_SECONDS + 1)
        if not sent:
            raise SendError(refused[0] if refused else "no acknowledgement in time")
        return sent

    def close(self) -> None:
        if self._producer is not None:
            self._producer.flush(1)

    def _connected(self) -> Producer:
        if self._producer is None:
            self._make_topic()
            self._producer = Producer(
                {**self._config, "enable.idempotence": True, "message.timeout.ms": _SEND_SECONDS * 1000},
                logger=LIBRDKAFKA_LOGGER,
            )
        return self._producer

    def _make_topic(self) -> None:
        admin = AdminClient({**self._config, "log_level": 0})
        new = NewTopic(
            self._topic,
            num_partitions=1,
            replication_factor=self._settings.replication_factor,
            config={"cleanup.policy": "compact"},
        )
        create_topic(admin, new, self._settings.connect_timeout_seconds)
