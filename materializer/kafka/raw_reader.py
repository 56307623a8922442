"""The consumer of a worker: one for all raw partitions that it has at the time."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from cdc_program.kafka import client_config
from materializer.kafka.clients import MAY_GO_AWAY, QUICK, TIMEOUT, driver_errors
from materializer.kafka.positions import read_positions
from materializer.records import RawPartition, RawRecord

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from cdc_program.settings import KafkaSettings
    from materializer.exactly_once.position import Position

_AT_ONCE = 1000
_MEMORY = {
    # What librdkafka holds beyond what it was asked for is at most the one and an answer of the other size.
    "queued.max.messages.kbytes": 16_384,
    "fetch.max.bytes": 8_388_608,
    "fetch.queue.backoff.ms": 20,
}
_MIN_BYTES = 65_536  # of an answer that comes before its time: a trickle of messages is not fetched one by one


class ReadBounds(NamedTuple):
    """No more messages and, but for the last of them, bytes of values are read at a time."""

    messages: int
    bytes: int


class Read(NamedTuple):
    """Messages by raw partition in the order of their offsets; `lost` are the partitions that do not have the offset
    at which they are read.
    """

    records: dict[RawPartition, list[RawRecord]]
    lost: set[RawPartition]


class RawReader:
    """Reads each of its raw partitions once from where it is told; CdcError (KAFKA_UNREACHABLE, KAFKA_REFUSED).

    It has the group's name to ask for positions, but never joins the group: who reads what is the driver's to say.
    wait_ms: how long a fetch may wait for more.
    """

    def __init__(self, settings: KafkaSettings, group: str, wait_ms: int) -> None:
        self._group = group
        self._names: dict[tuple[str, int], RawPartition] = {}
        self._consumer = Consumer(
            {
                **client_config(settings),
                **QUICK,
                **_MEMORY,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_uncommitted",  # for the positions: one in doubt does not hold up the others
                "fetch.min.bytes": _MIN_BYTES,
                "fetch.wait.max.ms": wait_ms,
            }
        )

    def positions(self, partitions: Collection[RawPartition]) -> dict[RawPartition, Position | None]:
        """The committed positions, which a transaction in doubt may move on; CdcError as GroupPositions, too."""
        with driver_errors(f"read the offsets of the group {self._group}"):
            return read_positions(self._consumer, partitions)

    def bounds(self, partition: RawPartition) -> tuple[int, int]:
        """The first offset that is there and the next one."""
        with driver_errors(f"read the offsets of {partition}"):
            # Else it may believe for minutes what a broker that was waking up has told it: no such partition.
            self._consumer.list_topics(partition.topic, TIMEOUT)
            first, following = self._consumer.get_watermark_offsets(TopicPartition(*partition), TIMEOUT)
        return first, following

    def add(self, offsets: Mapping[RawPartition, int]) -> None:
        """Read these, too, from these offsets on."""
        if offsets:
            with driver_errors("read the raw topics"):
                self._consumer.incremental_assign([TopicPartition(*each, at) for each, at in offsets.items()])
            self._names |= {(each.topic, each.partition): each for each in offsets}

    def remove(self, partitions: Iterable[RawPartition]) -> None:
        """Read these no longer."""
        gone = [TopicPartition(*each) for each in partitions if self._names.pop((each.topic, each.partition), None)]
        if gone:
            with driver_errors("read the raw topics"):
                self._consumer.incremental_unassign(gone)

    def read(self, bounds: ReadBounds, seconds: float) -> Read:
        """What comes in that time; less is waited for where the bounds are met, more where they are not yet and there
        is more at once.
        """
        read = Read(defaultdict(list), set())
        end = time.monotonic() + seconds
        count = size = 0
        while count < bounds.messages and size < bounds.bytes:
            asked = min(_AT_ONCE, bounds.messages - count)
            with driver_errors("read the raw topics"):
                messages = self._consumer.consume(asked, max(0.0, end - time.monotonic()))
                size += sum(self._take(message, read) for message in messages)
            count += len(messages)
            if len(messages) < asked:
                break
        return read

    def _take(self, message: Message, read: Read) -> int:
        partition = self._names.get((message.topic() or "", message.partition() or 0))
        error = message.error()
        if error is not None:
            if error.code() == KafkaError._AUTO_OFFSET_RESET and partition is not None:  # noqa: SLF001
                read.lost.add(partition)
            elif error.code() not in MAY_GO_AWAY:
                raise KafkaException(error)
            return 0
        if partition is None:
            return 0
        record = raw_record(message)
        read.records[partition].append(record)
        return len(record.value)


def raw_record(message: Message) -> RawRecord:
    """A message of a raw topic."""
    offset = message.offset()
    assert offset is not None
    return RawRecord(bytes(message.key() or b""), bytes(message.value() or b""), offset, message.timestamp()[1])
