"""The records that pass between the rooms: raw partitions, their records and decoded updates."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from cassandra_storage.formats.rows.deletion import LIVE, DeletionTime, RangeTombstone
from cassandra_storage.formats.rows.row import Row
from cdc_common.messages.changes import Source
from cdc_common.messages.raw import RawMessage
from stream_runtime.errors import ValueFreeError
from stream_runtime.records import Record, SourcePartition

# A partition of a raw topic: the unit of state.
RawPartition: TypeAlias = SourcePartition
RawRecord: TypeAlias = Record


# cdc_common.messages.changes.RowChange; cdc_native.fold.changes.EncodedChange if the core has written the message.
Change: TypeAlias = Any

# A write's order key: its largest write timestamp, then its place in a commit log (host, segment, position, index). A
# snapshot's row image has the largest timestamp that there is, then its place in the snapshot.
Order: TypeAlias = tuple[int, bytes, int, int, int]
SNAPSHOT_TIMESTAMP = 2**63 - 1


class Arrival(NamedTuple):
    """A raw message that has arrived in a raw partition."""

    # The raw message.
    record: RawRecord
    # Its decoded value.
    message: RawMessage
    # The time of the raw partition at which it arrived, in ms.
    arrival_ms: int

    @property
    def table_id(self) -> bytes:
        return self.message.table_id


class RowUpdate(NamedTuple):
    """One raw message's write to one Cassandra partition: exactly one of row, static, range and deletion."""

    # The place of the write among all writes.
    order: Order
    # The serialized partition key.
    partition_key: bytes
    # The `source` of its changes.
    source: Source
    # The time of the raw partition at which the message arrived, in ms.
    arrival_ms: int
    # The raw message's value.
    raw: bytes
    # A written row.
    row: Row | None = None
    # A written static row.
    static: Row | None = None
    # A deletion of a range of rows.
    range: RangeTombstone | None = None
    # The deletion of the whole Cassandra partition.
    deletion: DeletionTime = LIVE
    # Whether it is a snapshot's row image, which is folded when it arrives, after all writes of the log in its chunk.
    is_snapshot: bool = False


class UnreadableError(ValueFreeError):
    """A raw message that can't be read; `reason` contains no row values."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
