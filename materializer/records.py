"""What passes between the rooms: raw partitions, their records, decoded updates, and messages to send."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from cassandra_storage.formats.rows.deletion import LIVE, DeletionTime, RangeTombstone
from cassandra_storage.formats.rows.row import Row
from cdc_common.messages.changes import Source
from cdc_common.messages.raw import RawMessage


class RawPartition(NamedTuple):
    """A partition of a raw topic: the unit of state."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TopicShape(NamedTuple):
    """A raw topic's number of raw partitions, and its id: a topic that is deleted and created again has another id."""

    partitions: int
    topic_id: str


# cdc_common.messages.changes.RowChange; cdc_native.fold.changes.EncodedChange if the core has written the message.
Change: TypeAlias = Any

# A write's order key: its largest write timestamp, then its place in a commit log (host, segment, position, index). A
# snapshot's row image has the largest timestamp that there is, then its place in the snapshot.
Order: TypeAlias = tuple[int, bytes, int, int, int]
SNAPSHOT_TIMESTAMP = 2**63 - 1


class RawRecord(NamedTuple):
    """A Kafka record of one raw partition; `timestamp_ms` is the broker's (LogAppendTime)."""

    key: bytes
    value: bytes
    offset: int
    timestamp_ms: int


class WatermarkRecord(RawRecord):
    """A heartbeat that a worker has made of a publisher's watermark. It is no message of the raw partition: all of
    those before `offset` must be folded before it, and none after it is skipped by it.
    """

    __slots__ = ()


class Arrival(NamedTuple):
    """A record with its decoded message, and the time of the raw partition at which it arrived."""

    record: RawRecord
    message: RawMessage
    arrival_ms: int

    @property
    def table_id(self) -> bytes:
        return self.message.table_id


class RowUpdate(NamedTuple):
    """What one raw message writes to one Cassandra partition: exactly one of row, static, range and deletion.

    `arrival_ms`: the time of the raw partition at which the message arrived. `raw`: the message itself. `is_snapshot`:
    a snapshot's row image, which is folded when it arrives, after all writes of the log in its chunk.
    """

    order: Order
    partition_key: bytes
    source: Source
    arrival_ms: int
    raw: bytes
    row: Row | None = None
    static: Row | None = None
    range: RangeTombstone | None = None
    deletion: DeletionTime = LIVE
    is_snapshot: bool = False


class UnreadableError(Exception):
    """A raw message that can't be read; `reason` contains no row values."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Rest(NamedTuple):
    """While a raw partition rests, a watermark changes nothing in its state, and it need not be folded.

    due_ms: the first time of raw messages at which any watermark makes the fold emit or store something; None: no time.
    purge_ms: the first time at which a fold may purge something, or end what waits for publishers; None: no time.
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
