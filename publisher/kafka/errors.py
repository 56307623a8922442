"""Kafka's errors as CdcErrors that name the publisher's Kafka and the topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.clients import kafka_errors
from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

    from cdc_common.settings import KafkaSettings


def error_at(settings: KafkaSettings, error: KafkaError, topic: str = "") -> CdcError:
    """Return KAFKA_UNREACHABLE for what a later try heals, otherwise KAFKA_REFUSED. The publisher makes its topics
    itself, so it waits for none that is missing.
    """
    return kafka_errors.kafka_error(_at(settings, topic), error, awaits_topic=False)


def unreachable_error(settings: KafkaSettings, reason: str, topic: str = "") -> CdcError:
    """Return KAFKA_UNREACHABLE with the client's reason."""
    return CdcError(
        Code.KAFKA_UNREACHABLE,
        f"{_at(settings, topic)} does not answer: {reason}.",
        "Start Kafka, or correct kafka.bootstrap_servers and kafka.security_protocol.",
    )


def _at(settings: KafkaSettings, topic: str) -> str:
    about = f" (topic {topic})" if topic else ""
    return f"Kafka at {settings.bootstrap_servers}{about}"
