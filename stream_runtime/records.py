"""What passes between the rooms: source partitions, their records, and messages to send."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class SourcePartition(NamedTuple):
    """A partition of a source topic, as Kafka names it."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TopicShape(NamedTuple):
    """A topic's number of partitions, and its id: a topic that is deleted and created again has another id."""

    partitions: int
    topic_id: str


class Record(NamedTuple):
    """A Kafka record of one source partition; `timestamp_ms` is the broker's (LogAppendTime)."""

    key: bytes
    value: bytes
    offset: int
    timestamp_ms: int


class WatermarkRecord(Record):
    """A heartbeat that a worker has made of a publisher's watermark. It is no message of the source partition: all of
    those before `offset` must be processed before it, and none after it is skipped by it.
    """

    __slots__ = ()


class SourceRecord(NamedTuple):
    """A message as it is read; `value` None is a tombstone."""

    key: bytes | None
    value: bytes | None
    offset: int


class Rest(NamedTuple):
    """While a source partition rests, a watermark changes nothing in its state, and it need not be processed.

    due_ms: the first time of messages at which any watermark makes the job emit or store something; None: no time.
    purge_ms: the first time at which the job may purge something, or end what waits for publishers; None: no time.
    hosts: the CRC-32 of each publisher's host id that the state knows. Another publisher's watermark must be stored.
    rules: a hash of the schemas and settings under which this holds.
    """

    due_ms: int | None
    purge_ms: int | None
    hosts: frozenset[int]
    rules: int


class Message(NamedTuple):
    """A message to send; `value` None is a tombstone."""

    topic: str
    partition: int
    key: bytes
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


def list_partitions(shapes: Mapping[str, TopicShape]) -> list[SourcePartition]:
    """All partitions of the topics."""
    return [SourcePartition(topic, number) for topic, shape in shapes.items() for number in range(shape.partitions)]
