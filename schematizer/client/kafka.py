"""What producers and consumers by schema share: who they are, and Kafka's errors and topics."""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

ANSWER_SECONDS = 30.0
_PASSING = frozenset(
    {
        "LEADER_NOT_AVAILABLE",
        "NOT_CONTROLLER",
        "REQUEST_TIMED_OUT",
        "UNKNOWN_TOPIC_OR_PART",  # it is not made yet
        "_ALL_BROKERS_DOWN",
        "_MAX_POLL_EXCEEDED",  # the next poll joins the group again
        "_PARTITION_EOF",
        "_TIMED_OUT",
        "_TRANSPORT",
        "_UNKNOWN_TOPIC",
    }
)


@dataclass(frozen=True, slots=True)
class Service:
    """A service that produces or consumes. Watson shows it as late when it was not seen for twice
    `expected_frequency_seconds`.
    """

    team: str
    name: str
    expected_frequency_seconds: int = 60


def is_passing(error: KafkaError) -> bool:
    """Whether librdkafka gets over it by itself."""
    return error.retriable() or error.name() in _PASSING


def ensure_topic(admin: AdminClient, topic: str) -> None:
    """Create the topic with the broker's defaults if it does not exist. KafkaException.

    It looks first: who may write a topic may not be allowed to make one.
    """
    if topic in admin.list_topics(timeout=ANSWER_SECONDS).topics:
        return
    new = NewTopic(topic, num_partitions=-1, replication_factor=-1)
    try:
        admin.create_topics([new], request_timeout=ANSWER_SECONDS)[topic].result(ANSWER_SECONDS + 1)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
