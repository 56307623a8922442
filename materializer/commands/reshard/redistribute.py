"""Redistributes the states of a raw topic's partitions over another number of partitions. Pure.

The states must first have the same time, one schema for all rows, and no continuation. A fold with `make_tick` brings
them there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from cdc_common.messages.raw import RawMessage, encode
from cdc_common.messages.topics import partition_for
from materializer.fold.publishers import PublisherWatermark, decode_watermark, encode_watermark
from materializer.fold.schema_change import read_shown
from materializer.fold.snapshots import SnapshotProgress, encode_progress, least_far, read_snapshots, snapshot_key
from materializer.fold.truncations import TruncationState, encode_truncations, merged_truncations, read_truncations
from materializer.records import RawRecord
from materializer.rows.catalog import SchemaId
from materializer.rows.keys import (
    CLOCK,
    CONTINUATION,
    EVOLVED,
    EXPIRY,
    FLOOR,
    HELD,
    INCOMPLETE,
    NOW,
    PARTITION,
    PUBLISHER,
    PUBLISHER_END,
    PURGE,
    REORDER,
    REORDER_TIMER,
    REPAIR,
    ROWS_SECTION,
    SCHEMA,
    SHOWN,
    SNAPSHOT,
    STATIC_SECTION,
    TOPICS,
    TRUNCATED,
    schema_key,
    split_data_key,
    split_timer_key,
)
from materializer.rows.overlay import Overlay
from materializer.rows.published import Published, encode_published, read_published
from materializer.rows.row_codec import renumbered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_runtime.state.reader import StateReader

TICK_HOST = bytes(16)
"""The publisher of ticks. The settings of a fold that gets a tick must list it as forgotten."""

_LAST_CLOCK = 2**62  # after all schemas
_FIRST = b"\x01"  # after the state store's own marker
_END = b"\xff"
_FACTS = b"m"
# What is no Cassandra partition's, and repairs: one that is open changes nothing, as on a timeout.
_LEFT_OUT = frozenset({_FACTS, PUBLISHER, SCHEMA, SNAPSHOT, REPAIR, HELD})
_SCHEMA_END = b"t"


class Times(NamedTuple):
    """The times of a state."""

    # The state's time, in ms.
    now_ms: int
    # The time up to which writes are folded: `reorder_seconds` earlier, in ms.
    clock_ms: int


class StateFacts(NamedTuple):
    """The facts that a state stores besides the entries of Cassandra partitions."""

    # The state's times.
    times: Times
    # The largest row_sequence of any purged row.
    floor: int
    # The stored ranges of rows by schema (materializer.rows.keys.SHOWN); None if there are none.
    shown: bytes | None
    # The schema in force; None if the state is empty.
    schema: SchemaId | None
    # The clocks of publishers, by host id.
    publishers: Mapping[bytes, PublisherWatermark]
    # The stored digests by their numbers.
    schemas: Mapping[int, bytes]
    # The progress of each snapshot, by its id.
    snapshots: Mapping[UUID, SnapshotProgress]
    # The table's truncations; None if there were none.
    truncations: TruncationState | None
    # The change topic of each table id.
    published: Mapping[bytes, Published]

    @property
    def table_id(self) -> bytes | None:
        return None if self.schema is None else self.schema.table_id


class Redistribution(NamedTuple):
    """A plan to redistribute states to targets."""

    # The number of targets.
    target_count: int
    # The times of each target.
    times: Times
    # The entries that each target starts with.
    initial: Mapping[bytes, bytes]
    # For each source state, the targets' schema numbers by its own.
    schema_numbers: Sequence[Mapping[int, int]]


def make_tick(schema: SchemaId, now_ms: int) -> RawRecord:
    """A record that only sets the time, and puts a schema into force."""
    message = RawMessage("heartbeat", b"", 0, *schema, 0, TICK_HOST, 0, "", 0, 0, clock=_LAST_CLOCK)
    return RawRecord(b"", encode(message, 0), -1, now_ms)


def is_settled(reader: StateReader) -> bool:
    """Whether nothing is unfinished, and all rows are shown with one schema."""
    return reader.get(CONTINUATION) is None and len(read_shown(Overlay(reader))) <= 1


def read_facts(reader: StateReader) -> StateFacts:
    shown = read_shown(Overlay(reader))
    now_ms = _number(reader.get(NOW))
    clock = reader.get(CLOCK)
    return StateFacts(
        Times(now_ms, now_ms if clock is None else _number(clock)),
        _number(reader.get(FLOOR)),
        reader.get(SHOWN),
        shown[0].schema if shown else None,  # the newest: not all rows may follow it yet
        {key[1:]: decode_watermark(value) for key, value in reader.scan(PUBLISHER, PUBLISHER_END)},
        {int.from_bytes(key[1:], "big"): value for key, value in reader.scan(SCHEMA, _SCHEMA_END)},
        dict(read_snapshots(reader)),
        read_truncations(reader),
        read_published(reader),
    )


def plan_redistribution(states: Sequence[StateFacts], target_count: int, times: Times) -> Redistribution:
    """Plan the redistribution. ValueError if the states show their rows with different schemas, or publish them to
    different topics.
    """
    shown = {facts.shown for facts in states if facts.shown is not None}
    if len(shown) > 1:
        raise ValueError("the states show their rows under several schemas")
    schemas: dict[bytes, int] = {}
    schema_numbers = [
        {number: schemas.setdefault(stored, len(schemas)) for number, stored in facts.schemas.items()}
        for facts in states
    ]
    initial = {schema_key(number): stored for stored, number in schemas.items()}
    if shown:
        initial |= {NOW: _stored(times.now_ms), CLOCK: _stored(times.clock_ms), SHOWN: shown.pop()}
    if published := _common_topics([facts.published for facts in states]):
        initial[TOPICS] = encode_published(published)
    if floor := max((facts.floor for facts in states), default=0):
        initial[FLOOR] = _stored(floor)
    for publisher in {publisher for facts in states for publisher in facts.publishers}:
        # A publisher's watermark holds for a state's own keys only. The next heartbeat gives the target its own.
        heard_ms = max(facts.publishers[publisher].heard_ms for facts in states if publisher in facts.publishers)
        initial[PUBLISHER + publisher] = encode_watermark(PublisherWatermark(heard_ms))
    for snapshot in {snapshot for facts in states for snapshot in facts.snapshots}:
        # A target has rows of several states: none of them may still wait for a host of it.
        known = [facts.snapshots[snapshot] for facts in states if snapshot in facts.snapshots]
        initial[snapshot_key(snapshot)] = encode_progress(least_far(known))
    truncations = merged_truncations([facts.truncations for facts in states if facts.table_id is not None])
    if truncations is not None:
        initial[TRUNCATED] = encode_truncations(truncations)
    return Redistribution(target_count, times, initial, schema_numbers)


def _common_topics(states: Collection[Mapping[bytes, Published]]) -> dict[bytes, Published]:
    """The topics of all states; the offsets are of raw partitions that are no more."""
    topics = {table_id: Published(entry.topic) for published in states for table_id, entry in published.items()}
    if any(entry.topic != topics[table_id].topic for published in states for table_id, entry in published.items()):
        raise ValueError("the states publish their rows to several topics")
    return topics


def redistribute(
    reader: StateReader, schema_numbers: Mapping[int, int], target_count: int
) -> Iterator[tuple[int, bytes, bytes]]:
    """A state's entries for all targets: (target, key, value), in the order of the keys."""
    for key, value in reader.scan(_FIRST, _END):
        kind = key[:1]
        if kind in _LEFT_OUT:
            continue
        partition_key = _partition_key(kind, key)
        if kind == PARTITION and split_data_key(key)[1] in (STATIC_SECTION, ROWS_SECTION):
            value = renumbered(value, schema_numbers)  # noqa: PLW2901
        # An incomplete entry without a partition key may concern any Cassandra partition, so every target gets it.
        is_for_all = partition_key == b"" and kind == INCOMPLETE
        for target in range(target_count) if is_for_all else (partition_for(partition_key, target_count),):
            yield target, key, value


def _partition_key(kind: bytes, key: bytes) -> bytes:
    """The partition key of the Cassandra partition that an entry of a state belongs to."""
    if kind in (EXPIRY, PURGE):
        return split_data_key(split_timer_key(key)[1])[0]
    if kind == REORDER_TIMER:
        key = REORDER + split_timer_key(key)[1]
    elif kind not in (PARTITION, REORDER, INCOMPLETE):
        raise ValueError("unfinished" if kind == EVOLVED else f"entries of the kind {kind!r} belong nowhere")
    return split_data_key(key)[0]


def _number(stored: bytes | None) -> int:
    return int.from_bytes(stored or b"", "big")


def _stored(number: int) -> bytes:
    return number.to_bytes(8, "big")
