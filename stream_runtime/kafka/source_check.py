"""Checks that messages are from the topics to which the streams are bound.

A topic that is deleted and created again has the same name, and a consumer reads on in it without an error if it has
messages at the consumer's position. librdkafka gives no topic id with a message. So the brokers are asked for the ids
after messages were read, and before any of them is transformed: no two topics have the same id, so a topic that has its
id now had it when the messages were read. One request for all messages of a read is enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cdc_common.errors.codes import CdcError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from stream_runtime.faults import Faults
    from stream_runtime.kafka.source_reader import Read
    from stream_runtime.records import SourcePartition, TopicShape


class Describe(Protocol):
    """stream_runtime.kafka.Topics."""

    def each_shape(self, topics: Collection[str], /) -> Mapping[str, TopicShape | CdcError]: ...


def check_sources(read: Read, bound: Mapping[SourcePartition, TopicShape], topics: Describe, faults: Faults) -> Read:
    """Puts an error in the place of all that was read of a partition whose topic has another shape than it is bound to,
    or cannot be described now.
    """
    if not read.records:
        return read
    try:
        shapes = topics.each_shape(sorted({partition.topic for partition in read.records}))
    except CdcError as error:
        shapes = dict.fromkeys((partition.topic for partition in read.records), error)
    for partition in [partition for partition in read.records if partition in bound]:
        known, now = bound[partition], shapes[partition.topic]
        if now != known:
            del read.records[partition]
            read.following.pop(partition, None)
            read.errors[partition] = (
                now if isinstance(now, CdcError) else faults.topic_changed(partition.topic, known, now)
            )
    return read
