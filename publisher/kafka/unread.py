"""Measure how much of a topic a consumer group has not read yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from cdc_common.clients.group_offsets import CommittedOffsets
from cdc_common.clients.kafka import client_config
from publisher.kafka.errors import error_at, unreachable_error

if TYPE_CHECKING:
    from cdc_common.settings import KafkaSettings


class Unread(NamedTuple):
    """The unread part of a partition."""

    # The first offset that the group has not read.
    committed: int
    # The offset after the last message.
    end: int


class GroupReader:
    """Asks Kafka for one group's offsets in one topic; it joins no group."""

    def __init__(self, settings: KafkaSettings, group: str, topic: str, partitions: int) -> None:
        self._settings = settings
        self._topic = topic
        self._partitions = [(topic, number) for number in range(partitions)]
        self._offsets = CommittedOffsets(settings, group)
        config: dict[str, Any] = {**client_config(settings), "log_level": 0}
        self._admin = AdminClient(config)

    def read(self) -> dict[int, Unread]:
        """Return what the group has not read, by partition, without partitions for which it has committed nothing.
        CdcError KAFKA_UNREACHABLE, or KAFKA_REFUSED for a user who may not describe the group.
        """
        seconds = self._settings.connect_timeout_seconds
        try:
            offsets = self._offsets.committed(self._partitions, seconds)
            committed = {partition: offset for (_, partition), offset in offsets.items()}
            newest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
            latest = {TopicPartition(self._topic, number): newest for number in committed}
            ends = self._admin.list_offsets(latest, request_timeout=seconds) if latest else {}
            return {
                where.partition: Unread(committed[where.partition], answer.result(seconds).offset)
                for where, answer in ends.items()
            }
        except KafkaException as error:
            raise error_at(self._settings, error.args[0], self._topic) from error
        except TimeoutError as error:  # of the future: the client itself would wait longer
            raise unreachable_error(self._settings, "no answer in time", self._topic) from error
