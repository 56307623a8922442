"""The committed positions of the consumer group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, TopicPartition

from cdc_program.kafka import client_config
from materializer.exactly_once.position import Position, decode
from materializer.kafka.clients import QUICK, TIMEOUT
from materializer.records import RawPartition

if TYPE_CHECKING:
    from collections.abc import Collection

    from cdc_program.settings import KafkaSettings


class GroupPositions:
    """The committed positions of the consumer group.

    stable: wait for open transactions, those of a killed task until their timeout; otherwise reads return what was
    committed before them. A task reads after its producer has ended the raw partition's transactions: it does not wait.
    """

    def __init__(self, settings: KafkaSettings, group: str, *, stable: bool = True) -> None:
        self.consumer = Consumer(
            {
                **client_config(settings),
                **QUICK,
                "group.id": group,
                "isolation.level": "read_committed" if stable else "read_uncommitted",
                "enable.auto.commit": False,
            }
        )

    def read(self, partitions: Collection[RawPartition]) -> dict[RawPartition, Position | None]:
        """The position of each raw partition, None if nothing is committed.

        KafkaException, or CdcError (STATE_MISMATCH, STATE_FORMAT) for one that the materializer has not committed.
        """
        return read_positions(self.consumer, partitions)


def read_positions(consumer: Consumer, partitions: Collection[RawPartition]) -> dict[RawPartition, Position | None]:
    """As GroupPositions.read, for the group of a consumer."""
    if not partitions:
        return {}
    found = consumer.committed([TopicPartition(*each) for each in partitions], TIMEOUT)
    return dict(_position_of(each) for each in found)


def _position_of(committed: TopicPartition) -> tuple[RawPartition, Position | None]:
    if committed.error is not None:
        raise KafkaException(committed.error)
    where = RawPartition(committed.topic, committed.partition)
    if committed.offset == OFFSET_INVALID:
        return where, None
    return where, decode(committed.offset, committed.metadata, where)
