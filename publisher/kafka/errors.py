"""Kafka's errors as CdcErrors with a code and a fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError

from cdc_program.errors import CdcError, Code

if TYPE_CHECKING:
    from cdc_program.settings import KafkaSettings

_UNREACHABLE = frozenset(
    {"_TRANSPORT", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "_ALL_BROKERS_DOWN", "_RESOLVE", "REQUEST_TIMED_OUT"}
)


def kafka_error(error: KafkaError, settings: KafkaSettings, topic: str = "") -> CdcError:
    """KAFKA_UNREACHABLE if no broker can be reached, otherwise KAFKA_REFUSED."""
    about = f" (topic {topic})" if topic else ""
    if error.name() in _UNREACHABLE:
        return unreachable_error(settings, error.str(), topic)
    if error.code() == KafkaError.INVALID_REPLICATION_FACTOR:  # Kafka does not count brokers that are down
        return CdcError(
            Code.KAFKA_UNREACHABLE,
            f"Kafka at {settings.bootstrap_servers} has too few brokers now{about}: {error.str()}.",
            "Start the brokers that are down, or correct kafka.replication_factor.",
        )
    return CdcError(
        Code.KAFKA_REFUSED,
        f"Kafka at {settings.bootstrap_servers} refuses{about}: {error.name()}, {error.str()}.",
        "Fix the cause and restart the publisher: its position has not moved past the refused request.",
    )


def unreachable_error(settings: KafkaSettings, reason: str, topic: str = "") -> CdcError:
    about = f" (topic {topic})" if topic else ""
    return CdcError(
        Code.KAFKA_UNREACHABLE,
        f"Kafka at {settings.bootstrap_servers} does not answer{about}: {reason}.",
        "Start Kafka, or correct kafka.bootstrap_servers and kafka.security_protocol.",
    )
