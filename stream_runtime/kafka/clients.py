"""Properties that the Kafka clients share, and the translation of errors."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from confluent_kafka import KafkaError, KafkaException

from cdc_common.clients import kafka_errors
from cdc_common.clients.kafka import GROUP_REFUSED
from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Consumer, Message

    from stream_runtime.faults import Faults

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


T = TypeVar("T")


@contextmanager
def driver_errors(doing: str) -> Iterator[None]:
    """Turns KafkaException into CdcError, as `kafka_error`."""
    try:
        yield
    except KafkaException as exception:
        raise kafka_errors.kafka_error(f"Cannot {doing}", exception.args[0]) from exception


@contextmanager
def command_errors(doing: str, faults: Faults) -> Iterator[None]:
    """Convert errors as `driver_errors` does, and raise CdcError(STATE_MISMATCH) if another process has fenced this
    one.
    """
    with driver_errors(doing):
        try:
            yield
        except KafkaException as exception:
            if not kafka_errors.is_fenced(exception.args[0]):
                raise
            raise faults.fenced(doing) from exception


def batches(consumer: Consumer) -> Iterator[list[Message]]:
    """The messages of a consumer WITHOUT_GROUP that has its partitions assigned, those with the error _PARTITION_EOF at
    the end of a partition included. KafkaException, also if nothing arrives for TIMEOUT.
    """
    waited_until = time.monotonic() + TIMEOUT
    while time.monotonic() < waited_until:
        batch = [message for message in consumer.consume(_AT_ONCE, _POLL_SECONDS) if not _is_group_refusal(message)]
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
