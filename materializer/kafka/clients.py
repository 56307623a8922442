"""What all clients of the materializer share: their properties, and what becomes of their errors."""

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
    # Measured: a new client is ready in 15 instead of 55 ms. While no broker is left it tries 60 to 80 times a second
    # for 3 % of a core: librdkafka begins its waits anew each time (docs/decisions/0020).
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 1000,
    "retry.backoff.ms": 10,
}
MAY_GO_AWAY = {
    KafkaError._TRANSPORT,  # noqa: SLF001 - librdkafka's own codes begin with an underscore
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
    KafkaError._DESTROY_BROKER,  # noqa: SLF001 - a connection that the client has given up for another
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


@contextmanager
def driver_errors(doing: str) -> Iterator[None]:
    """Turns KafkaException into CdcError: KAFKA_UNREACHABLE where it may go away, KAFKA_REFUSED where it says no."""
    try:
        yield
    except KafkaException as exception:
        error: KafkaError = exception.args[0]
        if error.code() in MAY_GO_AWAY:
            raise CdcError(
                Code.KAFKA_UNREACHABLE,
                f"Kafka does not answer: cannot {doing}: {error.str()}.",
                "Start the brokers, or correct kafka.bootstrap_servers and its security settings.",
            ) from exception
        raise CdcError(
            Code.KAFKA_REFUSED,
            f"Kafka refuses to {doing}: {error.str()}.",
            "Grant the materializer's user the rights that docs/security.md lists.",
        ) from exception


@contextmanager
def command_errors(doing: str) -> Iterator[None]:
    """As `driver_errors`, and CdcError(STATE_MISMATCH) where another process has fenced this one."""
    with driver_errors(doing):
        try:
            yield
        except KafkaException as exception:
            if exception.args[0].code() not in _FENCED:
                raise
            raise CdcError(
                Code.STATE_MISMATCH,
                f"Another process has taken a raw partition over: cannot {doing}.",
                "Stop the materializer, and any other command of this group; then run it again.",
            ) from exception


def batches(consumer: Consumer) -> Iterator[list[Message]]:
    """What comes to a consumer WITHOUT_GROUP that is told its partitions: messages, and those that say by the error
    _PARTITION_EOF that there are no more of a partition. KafkaException, also where neither comes for long.
    """
    waited_until = time.monotonic() + TIMEOUT
    while time.monotonic() < waited_until:
        batch = [each for each in consumer.consume(_AT_ONCE, _POLL_SECONDS) if not _is_of_the_group(each)]
        if batch:
            yield batch
            waited_until = time.monotonic() + TIMEOUT  # not counting what its reader took
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001


def _is_of_the_group(message: Message) -> bool:
    """Who may not use the group reads all the same. KafkaException for any other error but the end of a partition."""
    error = message.error()
    if error is None or error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
        return False
    if error.name() != GROUP_REFUSED:
        raise KafkaException(error)
    return True


def timeout_refused(seconds: float, allowed: str) -> CdcError:
    return CdcError(
        Code.TRANSACTION_TIMEOUT,
        f"materializer.transaction_timeout_seconds is {seconds:g}; that is more than the brokers' "
        f"transaction.max.timeout.ms{allowed}.",
        "Set it to less, or raise transaction.max.timeout.ms on every broker.",
    )
