"""Reads the offsets that a consumer group has committed, by a client that joins no group.

The admin client has the same question, `list_consumer_group_offsets`. It ends the whole process with SIGSEGV if the
broker that is asked is no longer the group's coordinator: its handler passes the error to a consumer that an admin
client does not have (librdkafka issue 5040; seen with 2.16.0).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from cdc_common.clients.kafka import client_config
from cdc_common.clients.kafka_errors import is_transient

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdc_common.settings import KafkaSettings

_MOVING = frozenset(
    {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""The group's coordinator is just changing. The client then looks for the new one, but does not ask it."""
_AGAIN_SECONDS = 0.1


def reason_of_timeout(consumer: Consumer, error: KafkaException) -> KafkaException:
    """The error that the consumer received while a question for offsets waited for its coordinator, such as a missing
    right on the group; otherwise the error itself. For a consumer without messages: it takes one event from its queue.
    """
    if error.args[0].code() == KafkaError._TIMED_OUT:  # noqa: SLF001
        event = consumer.poll(0)
        if event is not None and (reason := event.error()) is not None and not is_transient(reason):
            return KafkaException(reason)
    return error


class CommittedOffsets:
    """One group's offsets, which an open transaction may still move. `close` it, or use it as a context."""

    def __init__(self, settings: KafkaSettings, group: str) -> None:
        own = {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_uncommitted", "log_level": 0}
        self._consumer = Consumer({**client_config(settings), **own})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def committed(
        self, partitions: Iterable[tuple[str, int]], seconds: float, *, skip_errors: bool = False
    ) -> dict[tuple[str, int], int]:
        """Return the offsets by topic and partition. A partition without a committed offset is left out.

        KafkaException if Kafka does not answer within so many seconds, if the user may not describe the group, or if
        Kafka answers with an error for one partition; `skip_errors` leaves out such a partition instead.
        """
        asked = [TopicPartition(topic, number) for topic, number in partitions]
        found = self._ask(asked, time.monotonic() + seconds) if asked else []
        for offset in found:
            if offset.error is not None and not skip_errors:
                raise KafkaException(offset.error)
        return {
            (offset.topic, offset.partition): offset.offset
            for offset in found
            if not offset.error and offset.offset >= 0
        }

    def _ask(self, asked: list[TopicPartition], end: float) -> list[TopicPartition]:
        while True:
            try:
                return self._consumer.committed(asked, max(end - time.monotonic(), _AGAIN_SECONDS))
            except KafkaException as error:
                if error.args[0].code() not in _MOVING or time.monotonic() >= end:
                    raise reason_of_timeout(self._consumer, error) from error
                time.sleep(_AGAIN_SECONDS)

    def close(self) -> None:
        self._consumer.close()
