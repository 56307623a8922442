"""The identity of producers and consumers by schema, and Kafka's errors and topics for both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka.admin import NewTopic

from cdc_common.clients.kafka_admin import create_topic, partition_counts
from cdc_common.clients.kafka_error_table import Kind
from cdc_common.clients.kafka_errors import is_transient, known_error

if TYPE_CHECKING:
    from confluent_kafka import KafkaError
    from confluent_kafka.admin import AdminClient

ANSWER_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Service:
    """A service that produces or consumes."""

    # The team that owns the service.
    team: str
    # The name of the service.
    name: str
    # How often it writes or reads at least, in s. Watson shows it as late after twice this time.
    expected_frequency_seconds: int = 60


def is_passing(error: KafkaError) -> bool:
    """Whether librdkafka gets over it by itself. An answer, such as the end of a partition, is no error."""
    return error.retriable() or is_transient(error) or known_error(error).kind is Kind.ANSWER


def ensure_topic(admin: AdminClient, topic: str) -> None:
    """Create the topic with the broker's defaults if it does not exist. KafkaException.

    It looks first: who may write a topic may not be allowed to make one.
    """
    if topic in partition_counts(admin, ANSWER_SECONDS):
        return
    create_topic(admin, NewTopic(topic, num_partitions=-1, replication_factor=-1), ANSWER_SECONDS)
