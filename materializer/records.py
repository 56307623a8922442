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
    """A record with its decoded message, and the time of the raw partition at which it arrived."""

    record: RawRecord
    message: RawMessage
    arrival_ms: int

    @property
    def table_id(self) -> bytes:
        return self.message.table_id


class RowUpdate(NamedTuple):
    """One raw message's write to one Cassandra partition: exactly one of row, static, range and deletion.

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


class UnreadableError(ValueFreeError):
    """A raw message that can't be read; `reason` contains no row values."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
