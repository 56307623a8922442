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
    """A change that affects all rows with clustering keys in [first, last); `last` None is the partition's end.

    It is a change of the `static` row, a `range` deletion, a `partition` deletion, or the replacement of all rows by
    what the `repair` with that id holds.
    """

    kind: Literal["static", "range", "partition", "repair"]
    first: bytes = b""
    last: bytes | None = None
    deletion: DeletionTime | None = None
    repair: bytes = b""


class FanOutContinuation(NamedTuple):
    """A write, or the expiry of one second, that is done up to `at` (section and what follows it in the key).

    static_before: the stored static row from before the change; empty if there was none. visible_before: how many rows
    were visible before the change. completes_record: the record that is being folded is done when this is.
    """

    partition_key: bytes
    schema: SchemaId
    fan_out: FanOut
    at: bytes
    source: Source
    now: NowInSeconds
    static_before: bytes
    visible_before: int
    completes_record: bool


class SchemaContinuation(NamedTuple):
    """A Cassandra partition that is being brought from the schema `shown` to `schema`, as seen at the second `now`.

    It is done up to `at` (section and what follows it in the key); `visible` rows have been found so far.
    """

    partition_key: bytes
    schema: SchemaId
    shown: SchemaId
    at: bytes
    now: int
    visible: int = 0


class RowsEndContinuation(NamedTuple):
    """The deletion of all rows of the table, as seen at the second `now`: up to this Cassandra partition, and in it up
    to `at` (section and what follows it in the key), all are deleted. The record that is being folded is done when this
    is.
    """

    partition_key: bytes
    schema: SchemaId
    at: bytes
    now: int
    source: Source


class TopicMoveContinuation(NamedTuple):
    """The move of all rows to another change topic, at the raw message `offset` and as seen at the second `now`: up to
    this Cassandra partition, and in it up to `at` (section and what follows it in the key), all have moved.

    `schema`: the rows' in the new topic. `visible`: as in SchemaContinuation, of this Cassandra partition.
    """

    partition_key: bytes
    schema: SchemaId
    at: bytes
    now: int
    offset: int
    topic: Topic
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
