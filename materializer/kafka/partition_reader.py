"""Single partitions that are read to an end, for the commands: their messages are fetched as they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from cdc_program.kafka import WITHOUT_GROUP, client_config
from materializer.kafka.clients import QUICK, batches
from materializer.kafka.raw_reader import raw_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Message

    from cdc_program.settings import KafkaSettings
    from materializer.records import RawPartition, RawRecord

_READ_AHEAD_KBYTES = 4096  # of one partition; several are read at a time


def read_partition(settings: KafkaSettings, topic: str, partition: int) -> Iterator[tuple[bytes, bytes | None]]:
    """The committed messages of a partition as far as its end is when it is reached: (key, value). KafkaException."""
    for message in _messages(settings, TopicPartition(topic, partition, OFFSET_BEGINNING)):
        if message is None:
            return
        key, value = message.key(), message.value()
        yield bytes(key or b""), None if value is None else bytes(value)


def read_raw(settings: KafkaSettings, partition: RawPartition, first: int, end: int) -> Iterator[RawRecord]:
    """The records of a raw partition with offsets in [first, end), of which the last is waited for. KafkaException."""
    if first >= end:
        return
    for message in _messages(settings, TopicPartition(*partition, first)):
        if message is None:
            continue
        record = raw_record(message)
        if record.offset < end:
            yield record
        if record.offset >= end - 1:
            return


def _messages(settings: KafkaSettings, start: TopicPartition) -> Iterator[Message | None]:
    """The committed messages from there on, and None whenever there are no more; KafkaException where none comes for
    long, and where that offset is not there.
    """
    bounds = {"queued.max.messages.kbytes": _READ_AHEAD_KBYTES, "auto.offset.reset": "error"}
    consumer = Consumer({**client_config(settings), **QUICK, **WITHOUT_GROUP, **bounds})
    try:
        consumer.assign([start])
        for batch in batches(consumer):
            yield from (message if message.error() is None else None for message in batch)
    finally:
        consumer.close()
