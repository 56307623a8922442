"""The continuation: work in one Cassandra partition that is too much for one chunk, stored between chunks.

A raw partition has at most one. While it is stored, nothing else of the raw partition is folded. The record that it
belongs to counts as folded only when the continuation is finished: until then the committed offset stays before the
record, so that a task that starts after a crash reads the record again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from cassandra_storage.formats.rows.deletion import DeletionTime
from cdc_common.messages.changes import Source
from cdc_common.messages.topics import Topic
from materializer.rows.catalog import SchemaId
from materializer.rows.expiry import NowInSeconds
from materializer.rows.format_version import VERSION_BYTE, check_version
from materializer.rows.keys import CONTINUATION

if TYPE_CHECKING:
    from materializer.rows.overlay import Overlay
    from stream_runtime.state.reader import StateReader


class FanOut(NamedTuple):
    """A change that affects all rows of a range of a Cassandra partition."""

    # The change: of the static row, a deletion of a range or of the Cassandra partition, or the replacement of all rows
    # by those that a repair holds.
    kind: Literal["static", "range", "partition", "repair"]
    # The first clustering key of the range.
    first: bytes = b""
    # The clustering key after the range; None for the partition's end.
    last: bytes | None = None
    # The deletion, of the kinds `range` and `partition`.
    deletion: DeletionTime | None = None
    # The repair's id, of the kind `repair`.
    repair: bytes = b""


class FanOutContinuation(NamedTuple):
    """A write, or the expiry of one second, that is partly done."""

    # The serialized partition key.
    partition_key: bytes
    # The schema in force.
    schema: SchemaId
    # The change.
    fan_out: FanOut
    # It is done up to this section and key in the Cassandra partition.
    at: bytes
    # The `source` of its changes.
    source: Source
    # The seconds at which it is decided what has expired.
    now: NowInSeconds
    # The stored static row from before the change; empty if there was none.
    static_before: bytes
    # How many rows were visible before the change.
    visible_before: int
    # Whether the record that is being folded is done when this is.
    completes_record: bool


class SchemaContinuation(NamedTuple):
    """A Cassandra partition that is being brought from one schema to another."""

    # The serialized partition key.
    partition_key: bytes
    # The new schema.
    schema: SchemaId
    # The schema under which the rows were published.
    shown: SchemaId
    # It is done up to this section and key in the Cassandra partition.
    at: bytes
    # The second at which its rows are shown.
    now: int
    # How many visible rows have been found so far.
    visible: int = 0


class RowsEndContinuation(NamedTuple):
    """The deletion of all rows of the table. The record that is being folded is done when this is."""

    # All Cassandra partitions before this one are done.
    partition_key: bytes
    # The schema in force.
    schema: SchemaId
    # In this Cassandra partition it is done up to this section and key.
    at: bytes
    # The second at which its rows are shown.
    now: int
    # The `source` of the deletions.
    source: Source


class TopicMoveContinuation(NamedTuple):
    """The move of all rows to another change topic."""

    # All Cassandra partitions before this one have moved.
    partition_key: bytes
    # The schema of the rows in the new topic.
    schema: SchemaId
    # In this Cassandra partition all rows up to this section and key have moved.
    at: bytes
    # The second at which its rows are shown.
    now: int
    # The offset of the raw message at which the move began.
    offset: int
    # The new topic.
    topic: Topic
    # How many visible rows of this Cassandra partition have been found so far.
    visible: int = 0


Continuation: TypeAlias = FanOutContinuation | SchemaContinuation | RowsEndContinuation | TopicMoveContinuation

_KINDS = {
    FanOutContinuation: "fan-out",
    SchemaContinuation: "schema",
    RowsEndContinuation: "rows end",
    TopicMoveContinuation: "topic move",
}


def read_continuation(overlay: Overlay | StateReader) -> Continuation | None:
    value = overlay.get(CONTINUATION)
    if value is None:
        return None
    check_version(value)
    kind, *fields = json.loads(value[1:], object_hook=lambda found: bytes.fromhex(found["hex"]))
    if kind == "schema":
        partition_key, schema, shown, *rest = fields
        return SchemaContinuation(partition_key, SchemaId(*schema), SchemaId(*shown), *rest)
    if kind == "rows end":
        partition_key, schema, at, now, source = fields
        return RowsEndContinuation(partition_key, SchemaId(*schema), at, now, Source(*source))
    if kind == "topic move":
        partition_key, schema, at, now, offset, topic, visible = fields
        return TopicMoveContinuation(partition_key, SchemaId(*schema), at, now, offset, Topic(*topic), visible)
    partition_key, schema, fan_out, at, source, now, *rest = fields
    change, first, last, deletion, *repair = fan_out
    return FanOutContinuation(
        partition_key,
        SchemaId(*schema),
        FanOut(change, first, last, None if deletion is None else DeletionTime(*deletion), *repair),
        at,
        Source(*source),
        NowInSeconds(*now),
        *rest,
    )


def store_continuation(overlay: Overlay, continuation: Continuation) -> None:
    kind = _KINDS[type(continuation)]
    text = json.dumps([kind, *continuation], default=lambda value: {"hex": value.hex()}, separators=(",", ":"))
    overlay.put(CONTINUATION, VERSION_BYTE + text.encode())


def delete_continuation(overlay: Overlay) -> None:
    overlay.put(CONTINUATION, None)
