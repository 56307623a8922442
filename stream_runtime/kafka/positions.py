"""The committed positions of the consumer group."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, TopicPartition

from cdc_common.clients.group_offsets import reason_of_timeout
from cdc_common.clients.kafka import client_config
from cdc_common.clients.kafka_admin import in_requests
from cdc_common.clients.kafka_errors import kafka_error
from cdc_common.errors.codes import CdcError
from stream_runtime.exactly_once.commits import StoredOffset
from stream_runtime.exactly_once.position import Position, decode
from stream_runtime.faults import NEUTRAL_FAULTS, Faults
from stream_runtime.kafka.clients import QUICK, TIMEOUT
from stream_runtime.records import SourcePartition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from cdc_common.settings import KafkaSettings


class GroupPositions:
    """The committed positions of the consumer group.

    stable: wait for open transactions, those of a killed task until their timeout; otherwise reads return what was
    committed before them. A task reads after its producer has ended the partition's transactions: it does not wait.
    After a failure a new client asks (decision 0018).
    """

    def __init__(
        self, settings: KafkaSettings, group: str, faults: Faults = NEUTRAL_FAULTS, *, stable: bool = True
    ) -> None:
        self._settings = settings
        self._group = group
        self._faults = faults
        self._isolation = "read_committed" if stable else "read_uncommitted"
        self.consumer = self._new_consumer()

    def stored(self, partitions: Collection[SourcePartition]) -> dict[SourcePartition, StoredOffset | None]:
        """The committed offsets, whoever has committed them; None if nothing is committed. KafkaException."""
        with self._renewed_after_failure():
            return read_stored(self.consumer, partitions)

    def read(self, partitions: Collection[SourcePartition]) -> dict[SourcePartition, Position | None]:
        """The position of each source partition, None if nothing is committed.

        KafkaException, or CdcError (STATE_MISMATCH, STATE_FORMAT) for one that the job has not committed.
        """
        with self._renewed_after_failure():
            return dict(_position_of(committed, self._faults) for committed in _committed(self.consumer, partitions))

    def read_each(self, partitions: Collection[SourcePartition]) -> dict[SourcePartition, Position | CdcError | None]:
        """Read positions as `read` does, but return the error of each partition that has one. KafkaException if the
        group cannot be read.
        """
        with self._renewed_after_failure():
            return read_each_position(self.consumer, partitions, self._faults)

    @contextmanager
    def _renewed_after_failure(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            reason = reason_of_timeout(self.consumer, error)
            self.consumer = self._new_consumer()
            raise reason from error

    def _new_consumer(self) -> Consumer:
        return Consumer(
            {
                **client_config(self._settings),
                **QUICK,
                "group.id": self._group,
                "isolation.level": self._isolation,
                "enable.auto.commit": False,
            }
        )


def read_stored(
    consumer: Consumer, partitions: Collection[SourcePartition]
) -> dict[SourcePartition, StoredOffset | None]:
    """Read offsets as GroupPositions.stored does, for the group of a consumer."""
    return dict(map(_stored, _committed(consumer, partitions)))


def read_each_position(
    consumer: Consumer, partitions: Collection[SourcePartition], faults: Faults
) -> dict[SourcePartition, Position | CdcError | None]:
    """Read positions as GroupPositions.read_each does, for the group of a consumer."""
    found: dict[SourcePartition, Position | CdcError | None] = {}
    for committed in _committed(consumer, partitions):
        where = SourcePartition(committed.topic, committed.partition)
        try:
            found[where] = _position_of(committed, faults)[1]
        except KafkaException as error:
            found[where] = kafka_error(f"Cannot read the offset of {where}", error.args[0])
        except CdcError as error:
            found[where] = error
    return found


def _committed(consumer: Consumer, partitions: Collection[SourcePartition]) -> list[TopicPartition]:
    found: list[TopicPartition] = []
    for asked in in_requests(TopicPartition(*partition) for partition in partitions):
        found += consumer.committed(asked, TIMEOUT)
    return found


def _stored(committed: TopicPartition) -> tuple[SourcePartition, StoredOffset | None]:
    if committed.error is not None:
        raise KafkaException(committed.error)
    where = SourcePartition(committed.topic, committed.partition)
    if committed.offset == OFFSET_INVALID:
        return where, None
    return where, StoredOffset(committed.offset, committed.metadata or "")


def _position_of(committed: TopicPartition, faults: Faults) -> tuple[SourcePartition, Position | None]:
    where, stored = _stored(committed)
    return where, None if stored is None else decode(stored.offset, stored.metadata, where, faults)
