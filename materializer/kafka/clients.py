"""What the materializer's Kafka clients share: properties, and the translation of errors."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from cdc_program.errors import CdcError, Code
from cdc_program.kafka import GROUP_REFUSED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Consumer, Message

TIMEOUT = 30.0
_AT_ONCE = 1000
_POLL_SECONDS = 0.5
QUICK = {
    # Measured: a new client is ready in 15 instead of 55 ms. While no broker is up it tries 60 to 80 times a second,
    # which takes 3 % of a core: librdkafka restarts its backoff each time (decision 0018).
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 1000,
    "retry.backoff.ms": 10,
    # Each of these attempts is a line on stderr: 17 MB an hour. What fails is raised as an error, and a worker's reader
    # logs why.
    "log_level": 0,
}
TRANSIENT_ERRORS = {
    KafkaError._TRANSPORT,  # noqa: SLF001 - librdkafka's own codes begin with an underscore
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
    KafkaError._DESTROY_BROKER,  # noqa: SLF001 - a connection that the client has replaced
    KafkaError._WAIT_COORD,  # noqa: SLF001
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - a broker that has just started may not know its partitions yet
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError._NOENT,  # noqa: SLF001 - no leader
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.NOT_CONTROLLER,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
}

_FENCED = {
    KafkaError._FENCED,  # noqa: SLF001
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
}


def kafka_error(doing: str, exception: KafkaException) -> CdcError:
    """Return a CdcError: KAFKA_UNREACHABLE for transient errors, KAFKA_REFUSED for all others."""
    error: KafkaError = exception.args[0]
    if error.code() in _FENCED:
        return CdcError(
            Code.KAFKA_REFUSED,
            f"Cannot {doing}: a newer producer has taken over the raw partition.",
            "None if this occurs once: the newer task continues from the committed position. If it repeats, two jobs "
            "share materializer.group_id: stop one of them.",
        )
    if error.code() in TRANSIENT_ERRORS:
        return CdcError(
            Code.KAFKA_UNREACHABLE,
            f"Kafka does not answer: cannot {doing}: {error.str()}.",
            "Start the brokers, or correct kafka.bootstrap_servers and its security settings.",
        )
    return CdcError(
        Code.KAFKA_REFUSED,
        f"Kafka refuses to {doing}: {error.str()}.",
        "Grant the job's user the rights listed in docs/guides/secure.md.",
    )


@contextmanager
def driver_errors(doing: str) -> Iterator[None]:
    """Turns KafkaException into CdcError, as `kafka_error`."""
    try:
        yield
    except KafkaException as exception:
        raise kafka_error(doing, exception) from exception


@contextmanager
def command_errors(doing: str) -> Iterator[None]:
    """Convert errors as `driver_errors` does, and raise CdcError(STATE_MISMATCH) if another process has fenced this
    one.
    """
    with driver_errors(doing):
        try:
            yield
        except KafkaException as exception:
            if exception.args[0].code() not in _FENCED:
                raise
            raise CdcError(
                Code.STATE_MISMATCH,
                f"Another process has taken over a raw partition: cannot {doing}.",
                "Stop the materializer, and any other command of this group; then run it again.",
            ) from exception


def batches(consumer: Consumer) -> Iterator[list[Message]]:
    """The messages of a consumer WITHOUT_GROUP that has its partitions assigned, those with the error _PARTITION_EOF at
    the end of a partition included. KafkaException, also if nothing arrives for TIMEOUT.
    """
    waited_until = time.monotonic() + TIMEOUT
    while time.monotonic() < waited_until:
        batch = [each for each in consumer.consume(_AT_ONCE, _POLL_SECONDS) if not _is_group_refusal(each)]
        if batch:
            yield batch
            waited_until = time.monotonic() + TIMEOUT  # without the time that the caller took
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001


def _is_group_refusal(message: Message) -> bool:
    """Reading without a group works without the right to use it. KafkaException for any error but these two."""
    error = message.error()
    if error is None or error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
        return False
    if error.name() != GROUP_REFUSED:
        raise KafkaException(error)
    return True


def timeout_refused(seconds: float, allowed: str) -> CdcError:
    return CdcError(
        Code.TRANSACTION_TIMEOUT,
        f"The job's transaction_timeout_seconds is {seconds:g}, which is more than the brokers' "
        f"transaction.max.timeout.ms{allowed}.",
        "Lower it, or raise transaction.max.timeout.ms on every broker.",
    )
