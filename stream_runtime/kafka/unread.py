"""Measure how far source partitions are behind, and until when Kafka keeps what they have not read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import Consumer, TopicPartition

from cdc_common.clients.kafka import WITHOUT_GROUP, client_config
from stream_runtime.kafka.clients import QUICK, driver_errors
from stream_runtime.records import SourcePartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdc_common.settings import KafkaSettings

_POLL_SECONDS = 0.5
_AT_ONCE = 100


class Retention(NamedTuple):
    """How long a topic keeps its messages."""

    # The setting retention.ms; None if time deletes nothing.
    milliseconds: int | None
    # Whether retention.bytes may delete earlier.
    has_max_bytes: bool


def read_timestamps(
    settings: KafkaSettings, offsets: Mapping[SourcePartition, int], seconds: float
) -> dict[SourcePartition, int]:
    """The timestamp (ms) of the record at each offset, as far as they arrive in this time.

    CdcError KAFKA_UNREACHABLE or KAFKA_REFUSED.
    """
    found: dict[SourcePartition, int] = {}
    own = {"auto.offset.reset": "error", "queued.min.messages": 1, "fetch.message.max.bytes": 1024}
    with driver_errors("read the oldest unread messages"):
        consumer = Consumer({**client_config(settings), **QUICK, **WITHOUT_GROUP, **own})
        try:
            consumer.assign([TopicPartition(*partition, offset) for partition, offset in offsets.items()])
            end = time.monotonic() + seconds
            while len(found) < len(offsets) and time.monotonic() < end:
                for message in consumer.consume(_AT_ONCE, _POLL_SECONDS):
                    partition = SourcePartition(message.topic() or "", message.partition() or 0)
                    if message.error() is None and partition not in found:
                        found[partition] = message.timestamp()[1]
                        consumer.incremental_unassign([TopicPartition(*partition)])
        finally:
            consumer.close()
    return found
