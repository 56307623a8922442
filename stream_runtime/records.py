"""Records that pass between the rooms: source partitions, shares, messages that are read and messages to send."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cdc_native.fold.changes import EncodedChange  # noqa: TC004 - the core may be missing


class SourcePartition(NamedTuple):
    """A partition of a source topic, as Kafka names it."""

    # The topic's name.
    topic: str
    # The partition's number.
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Share(NamedTuple):
    """A fixed set of source partitions that one task owns. It is the unit of placement, fencing, retry and stop."""

    # The name under which the job plans it. An error of a stream stops all its shares.
    stream: str
    # In the order of their names.
    partitions: tuple[SourcePartition, ...]
    # Its name in its consumer group. Its transactional id is `<group>/<id>`. That of a single partition is the
    # partition's name.
    id: str
    # Which of the job's readers it belongs to, such as a transformer: two of them may read the same partition, each in
    # a consumer group of its own. Empty if the job has only one.
    reader: str = ""

    @classmethod
    def of(cls, partition: SourcePartition) -> Self:
        """The share of one partition, in a job that plans by topics."""
        return cls(partition.topic, (partition,), str(partition))

    @property
    def partition(self) -> SourcePartition:
        """The source partition of a share that has only one. ValueError for any other share."""
        (partition,) = self.partitions
        return partition

    @property
    def number(self) -> str:
        """The number of its partition, where the stream is named beside it; its id if it has several partitions."""
        return str(self.partition.partition) if len(self.partitions) == 1 else self.id

    def __str__(self) -> str:
        return f"{self.reader}/{self.id}" if self.reader else self.id


class TopicShape(NamedTuple):
    """A topic's shape: a topic that is deleted and created again has another id."""

    # Its number of partitions.
    partitions: int
    # Kafka's id of the topic.
    topic_id: str


class Record(NamedTuple):
    """A Kafka record of one source partition."""

    # The key.
    key: bytes
    # The value.
    value: bytes
    # The offset.
    offset: int
    # The broker's time (LogAppendTime), in ms.
    timestamp_ms: int


class WatermarkRecord(Record):
    """A heartbeat that a worker has made of a publisher's watermark. It is no message of the source partition: all of
    those before `offset` must be processed before it, and none after it is skipped by it.
    """

    __slots__ = ()


class SourceRecord(NamedTuple):
    """A message as it is read."""

    # The key; None without one.
    key: bytes | None
    # The value; None is a tombstone.
    value: bytes | None
    # The offset.
    offset: int


class Rest(NamedTuple):
    """A time in which a watermark changes nothing in a source partition's state, so that it need not be processed."""

    # The first time of messages (ms) at which any watermark makes the job emit or store something; None: no time.
    due_ms: int | None
    # The first time (ms) at which the job may purge something, or end what waits for publishers; None: no time.
    purge_ms: int | None
    # The CRC-32 of each publisher's host id that the state knows. Another publisher's watermark must be stored.
    hosts: frozenset[int]
    # A hash of the schemas and settings under which this holds.
    rules: int


class Message(NamedTuple):
    """A message to send."""

    # The topic's name.
    topic: str
    # The partition's number.
    partition: int
    # The key.
    key: bytes
    # The value; None is a tombstone.
    value: bytes | None
    # The headers, in order.
    headers: tuple[tuple[str, bytes], ...] = ()


class ChangeRun(NamedTuple):
    """The messages of changes that go to one topic, in order. The core's producer makes no Python object for each."""

    # The topic's name.
    topic: str
    # Its number of partitions: each change goes to that of its partition key.
    partitions: int
    # The changes.
    changes: list[EncodedChange]
    # What follows each change's value.
    end: bytes
    # Whether a message without a value follows each deletion.
    tombstones: bool

    def messages(self) -> Iterator[Message]:
        """The messages, as the core's producer sends them."""
        for change in self.changes:
            partition = change.partition(self.partitions)
            yield Message(self.topic, partition, change.key, change.value + self.end)
            if self.tombstones and change.op == "d":
                yield Message(self.topic, partition, change.key, None)


def list_partitions(shapes: Mapping[str, TopicShape]) -> list[SourcePartition]:
    """All partitions of the topics."""
    return [SourcePartition(topic, number) for topic, shape in shapes.items() for number in range(shape.partitions)]


def list_shares(shapes: Mapping[str, TopicShape]) -> list[Share]:
    """A share for each partition of the topics, in a job that plans by topics."""
    return [Share.of(partition) for partition in list_partitions(shapes)]
