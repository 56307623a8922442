"""Reading single partitions to an end, for the commands. Messages are fetched as they are needed."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from cdc_common.clients.kafka import WITHOUT_GROUP, client_config
from stream_runtime.kafka.clients import QUICK, batches
from stream_runtime.kafka.consumers import record_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Message

    from cdc_common.settings import KafkaSettings
    from stream_runtime.records import Record, SourcePartition

_LAST_OFFSETS = 16
_READ_AHEAD_KBYTES = 4096  # for each partition; several are read at the same time


def read_partition(settings: KafkaSettings, topic: str, partition: int) -> Iterator[tuple[bytes, bytes | None]]:
    """The committed messages, (key, value), of a partition up to its end at the time it is reached. KafkaException."""
    for message in _messages(settings, TopicPartition(topic, partition, OFFSET_BEGINNING), None):
        key, value = message.key(), message.value()
        yield bytes(key or b""), None if value is None else bytes(value)


def read_offsets(settings: KafkaSettings, partition: SourcePartition, first: int) -> Iterator[tuple[int, bytes | None]]:
    """The committed messages, (offset, value), from an offset on up to the partition's end. KafkaException."""
    for message in _messages(settings, TopicPartition(*partition, first), None):
        offset, value = message.offset(), message.value()
        assert offset is not None
        yield offset, None if value is None else bytes(value)


def read_last(settings: KafkaSettings, partition: SourcePartition, bounds: tuple[int, int]) -> bytes | None:
    """The value of the last committed message; None if there is none. bounds: of the partition. KafkaException."""
    first, end = bounds
    start, count = end, _LAST_OFFSETS
    while start > first:
        start, count = max(first, end - count), count * 8  # markers of transactions have offsets, too
        found = [value for _, value in read_offsets(settings, partition, start)]
        if found:
            return found[-1]
    return None


def read_raw(settings: KafkaSettings, partition: SourcePartition, first: int, end: int) -> Iterator[Record]:
    """The records of a source partition with offsets in [first, end). Waits for the last one. KafkaException."""
    if first < end:
        yield from map(record_of, _messages(settings, TopicPartition(*partition, first), end))


def _messages(settings: KafkaSettings, start: TopicPartition, end: int | None) -> Iterator[Message]:
    """The committed messages before the offset `end`, or before the end of the partition if `end` is None.

    KafkaException if none arrives in time, or if the first offset does not exist.
    """
    own = {"queued.max.messages.kbytes": _READ_AHEAD_KBYTES, "auto.offset.reset": "error"}
    consumer = Consumer({**client_config(settings), **QUICK, **WITHOUT_GROUP, **own})
    try:
        consumer.assign([start])
        for message in chain.from_iterable(batches(consumer)):
            if message.error() is not None:  # the end of the partition
                if end is None:
                    return
                continue
            offset = message.offset()
            assert offset is not None
            if end is None or offset < end:
                yield message
            if end is not None and offset >= end - 1:
                return
    finally:
        consumer.close()
