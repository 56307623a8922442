"""Kafka's errors in the same words in every program. kafka_error_table says what heals them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.clients.kafka_error_table import ERRORS, UNKNOWN, Kind
from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

    from cdc_common.clients.kafka_error_table import Known


class ProducerExpiredError(CdcError):
    """The brokers have forgotten an idle producer, and no instance has fenced it. A new one continues."""


_PASSING = frozenset({Kind.TRANSIENT, Kind.EXPIRED})


def known_error(error: KafkaError) -> Known:
    """Return the table's entry for an error."""
    return ERRORS.get(error.name(), UNKNOWN)


def is_transient(error: KafkaError, *, awaits_topic: bool = True) -> bool:
    """Whether a later try, or a new client, heals the error. awaits_topic: whether a missing topic counts as that: a
    broker that has just started may not know it yet.
    """
    kind = known_error(error).kind
    return kind in _PASSING or (awaits_topic and kind is Kind.TOPIC)


def is_fenced(error: KafkaError) -> bool:
    """Whether another instance has taken over."""
    return known_error(error).kind is Kind.FENCED


def is_expired(error: KafkaError) -> bool:
    """Whether the brokers have forgotten a producer that no instance has replaced: a new one continues."""
    return known_error(error).kind is Kind.EXPIRED


def explain(error: KafkaError) -> str:
    """Explain the error, with its name and the client's words."""
    return f"{known_error(error).meaning} ({error.name()}: {error.str()})"


def kafka_error(what: str, error: KafkaError, *, awaits_topic: bool = True) -> CdcError:
    """Return KAFKA_UNREACHABLE for an error that `is_transient`, otherwise KAFKA_REFUSED. It is a ProducerExpiredError
    if the error `is_expired`.

    what: which request failed, or at which Kafka; a colon and the explanation follow.
    """
    code = Code.KAFKA_UNREACHABLE if is_transient(error, awaits_topic=awaits_topic) else Code.KAFKA_REFUSED
    made = ProducerExpiredError if is_expired(error) else CdcError
    return made(code, f"{what}: {explain(error)}.", known_error(error).fix)
