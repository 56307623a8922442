"""Frozen vectors of single values in the materializer's state, each by the function that reads its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from cdc_common.messages.changes import Source
from cdc_common.messages.topics import Topic
from materializer.fold import publishers, repairs, snapshots, truncations
from materializer.fold.repairs import Ended, Repair
from materializer.rows import partition_state, published, range_tombstones
from materializer.rows.catalog import SchemaId
from materializer.rows.continuation import (
    FanOut,
    FanOutContinuation,
    RowsEndContinuation,
    SchemaContinuation,
    TopicMoveContinuation,
    read_continuation,
    store_continuation,
)
from materializer.rows.expiry import NowInSeconds
from materializer.rows.keys import CONTINUATION, TOPICS, TRUNCATED, schema_key
from materializer.rows.overlay import Overlay, StoredRow
from materializer.rows.ranges import DeletedRange
from materializer.rows.row_codec import RowCodec
from tests.support.frozen.messages import DELETION, HOST, KEY, OTHER, ROW, SECOND, STATIC, WRITTEN_US
from tests.support.frozen.vectors import Format, Vector, plain
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.raw_builder import CATALOG, TABLE, WRITER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from materializer.rows.continuation import Continuation

MS = WRITTEN_US // 1000
SCHEMA = SchemaId(TABLE.id.bytes, WRITER.digest)
SOURCE = Source(WRITTEN_US, HOST, "CommitLog-7-1794999000000.log", 4096)
FACTS = partition_state.PartitionFacts(DELETION, 3, 7, has_ranges=True)
PIECE = DeletedRange(b"\x40\x80\x00\x00\x02", b"\x40\x80\x00\x00\x09", DELETION)
WATERMARK = publishers.PublisherWatermark(MS, WRITTEN_US, WRITTEN_US + 5, MS + 1)
PROGRESS = snapshots.SnapshotProgress(MS, MS + 1, {HOST: "ended", OTHER: "running"})
REPAIR = Repair(
    KEY, UUID(int=0x4E), MS, WRITER.digest, "open", {HOST: Ended(1_795_000_000_000, 4711, 2), OTHER: "running"}
)
TRUNCATIONS = truncations.TruncationState(
    TABLE.id.bytes,
    {HOST: truncations.Boundary(1, 4096, MS), OTHER: truncations.Boundary(2, 7, MS, is_settled=False)},
    at=MS,
    is_settled=True,
    arrived_ms=MS + 1,
    known=frozenset({HOST, OTHER}),
    waits=frozenset({OTHER}),
    lost={OTHER: MS},
)
PUBLISHED = {TABLE.id.bytes: published.Published(Topic("cdc.shop.orders", 3), 4711)}
FAN_OUT = FanOut("range", b"\x40", None, DELETION)
CONTINUATIONS: dict[str, Continuation] = {
    "fan-out": FanOutContinuation(
        KEY, SCHEMA, FAN_OUT, b"\x03\x40", SOURCE, NowInSeconds(SECOND, SECOND), b"", 3, True
    ),
    "schema": SchemaContinuation(KEY, SCHEMA, SCHEMA, b"\x03", SECOND, 2),
    "rows end": RowsEndContinuation(KEY, SCHEMA, b"\x03", SECOND, SOURCE._replace(cause="truncate")),
    "topic move": TopicMoveContinuation(KEY, SCHEMA, b"\x03", SECOND, 4711, Topic("cdc.shop.orders-v2", 3), 2),
}


def make_values() -> list[Vector]:
    state = MemoryState()
    overlay = Overlay(state)
    codec = RowCodec(overlay, CATALOG, TABLE.id.bytes)
    rows = {"row": StoredRow(ROW, 5), "static row": StoredRow(STATIC, 0)}
    found = [
        Vector(name, codec.encode(stored, is_static=name == "static row"), plain(stored))
        for name, stored in rows.items()
    ]
    found += [
        Vector("schema", overlay.writes[schema_key(0)] or b"", WRITER.digest.hex()),
        Vector("facts", partition_state.encode_facts(FACTS), plain(FACTS)),
        Vector("range tombstone", range_tombstones.encode_range(PIECE), plain(PIECE)),
        Vector("watermark", publishers.encode_watermark(WATERMARK), plain(WATERMARK)),
        Vector("snapshot", snapshots.encode_progress(PROGRESS), plain(PROGRESS)),
        Vector("repair", repairs.encode_repair(REPAIR), plain(REPAIR)),
        Vector("truncations", truncations.encode_truncations(TRUNCATIONS), plain(TRUNCATIONS)),
        Vector("topics", published.encode_published(PUBLISHED), plain(PUBLISHED)),
    ]
    for name, continuation in CONTINUATIONS.items():
        store_continuation(overlay, continuation)
        found.append(Vector(f"continuation {name}", overlay.writes[CONTINUATION] or b"", plain(continuation)))
    return found


def read_values(name: str, data: Mapping[str, bytes]) -> Any:  # noqa: ANN401, PLR0911 - JSON; a reader for each kind
    value, state = data[name], MemoryState()
    if name in ("row", "static row"):
        state.data[schema_key(0)] = data["schema"]
        codec = RowCodec(Overlay(state), CATALOG, TABLE.id.bytes)
        return plain(codec.decode(value, is_static=name == "static row"))
    if name == "schema":
        state.data[schema_key(0)] = value
        assert RowCodec(Overlay(state), CATALOG, TABLE.id.bytes).newest_number() == 0
        return value[1:].hex()
    if name.startswith("continuation "):
        state.data[CONTINUATION] = value
        return plain(read_continuation(state))
    if name == "truncations":
        state.data[TRUNCATED] = value
        return plain(truncations.read_truncations(state))
    if name == "topics":
        state.data[TOPICS] = value
        return plain(published.read_published(state))
    if name == "range tombstone":
        return plain(range_tombstones.decode_range(PIECE.first, value))
    if name == "repair":
        return plain(repairs.decode_repair(REPAIR.key, value))
    readers = {
        "facts": partition_state.decode_facts,
        "watermark": publishers.decode_watermark,
        "snapshot": snapshots.decode_progress,
    }
    return plain(readers[name](value))


FORMATS = (Format("state-values", ("materializer/rows/format_version.py",), make_values, read_values),)
