"""States of a raw topic's partitions dealt out anew, by another number of partitions. Pure.

What the states must have in common first, a fold with `tick` brings about: the same time, the same schema shown in all
rows, and nothing unfinished.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cdc_messages.raw import RawMessage, encode
from cdc_messages.topics import partition_for
from materializer.fold.publishers import PublisherWatermark, decode_watermark, encode_watermark
from materializer.fold.schema_change import read_shown
from materializer.records import RawRecord
from materializer.rows.keys import (
    CLOCK,
    CONTINUATION,
    EVOLVED,
    EXPIRY,
    FLOOR,
    INCOMPLETE,
    NOW,
    PARTITION,
    PUBLISHER,
    PUBLISHER_END,
    PURGE,
    REORDER,
    REORDER_TIMER,
    ROWS_SECTION,
    SCHEMA,
    SHOWN,
    STATIC_SECTION,
    schema_key,
    split_data_key,
    split_timer_key,
)
from materializer.rows.overlay import Overlay
from materializer.rows.row_codec import renumbered

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from materializer.rows.overlay import StateReader

TICK_HOST = bytes(16)
"""The host that ticks come from; the rules of a fold that is given one must forget it."""

_FIRST = b"\x01"  # behind the state store's own marker
_END = b"\xff"
_FACTS = b"m"
_SCHEMA_END = b"t"


class Times(NamedTuple):
    """The times (ms) of a state: `now`, and the clock, which `hold` keeps behind it."""

    now_ms: int
    clock_ms: int


class Facts(NamedTuple):
    """What a state knows as a whole. `schemas`: the stored digests by their numbers. table_id: None of an empty one."""

    times: Times
    floor: int
    shown: bytes | None
    table_id: bytes | None
    hosts: Mapping[bytes, PublisherWatermark]
    schemas: Mapping[int, bytes]


class Deal(NamedTuple):
    """How states are dealt out to `count` partitions: the time that each is at, what it begins with, and the numbers
    that it gives to the schemas of each of the states, in their order.
    """

    partitions: int
    times: Times
    begin: Mapping[bytes, bytes]
    numbers: Sequence[Mapping[int, int]]


def tick(table_id: bytes, now_ms: int) -> RawRecord:
    """A record that brings nothing but the time, and which of the tables of its name is there."""
    message = RawMessage("heartbeat", b"", 0, table_id, bytes(16), 0, TICK_HOST, 0, "", 0, 0)
    return RawRecord(b"", encode(message, 0), -1, now_ms)


def is_settled(reader: StateReader) -> bool:
    """Whether nothing is unfinished, and all rows are shown under one schema."""
    return reader.get(CONTINUATION) is None and len(read_shown(Overlay(reader))) <= 1


def read_facts(reader: StateReader) -> Facts:
    shown = read_shown(Overlay(reader))
    now_ms = _number(reader.get(NOW))
    clock = reader.get(CLOCK)
    return Facts(
        Times(now_ms, now_ms if clock is None else _number(clock)),
        _number(reader.get(FLOOR)),
        reader.get(SHOWN),
        shown[-1].schema.table_id if shown else None,
        {key[1:]: decode_watermark(value) for key, value in reader.scan(PUBLISHER, PUBLISHER_END)},
        {int.from_bytes(key[1:], "big"): value for key, value in reader.scan(SCHEMA, _SCHEMA_END)},
    )


def make_deal(states: Sequence[Facts], count: int, times: Times) -> Deal:
    """ValueError where the states are not settled alike."""
    shown = {facts.shown for facts in states if facts.shown is not None}
    if len(shown) > 1:
        raise ValueError("the states show their rows under several schemas")
    schemas: dict[bytes, int] = {}
    numbers = [
        {number: schemas.setdefault(stored, len(schemas)) for number, stored in facts.schemas.items()}
        for facts in states
    ]
    begin = {schema_key(number): stored for stored, number in schemas.items()}
    if shown:
        begin |= {NOW: _stored(times.now_ms), CLOCK: _stored(times.clock_ms), SHOWN: shown.pop()}
    if floor := max((facts.floor for facts in states), default=0):
        begin[FLOOR] = _stored(floor)
    for host in {host for facts in states for host in facts.hosts}:
        # How far it has got is true of another set of keys: its next heartbeat tells it of this one.
        heard_ms = max(facts.hosts[host].heard_ms for facts in states if host in facts.hosts)
        begin[PUBLISHER + host] = encode_watermark(PublisherWatermark(heard_ms))
    return Deal(count, times, begin, numbers)


def dealt(
    reader: StateReader, numbers: Mapping[int, int], count: int, wanted: Collection[int]
) -> Iterator[tuple[int, bytes, bytes]]:
    """What a state holds of the `wanted` partitions: (partition, key, value), in the order of the keys."""
    for key, value in reader.scan(_FIRST, _END):
        kind = key[:1]
        if kind in (_FACTS, PUBLISHER, SCHEMA):
            continue
        owner = _owner(kind, key)
        if kind == PARTITION and split_data_key(key)[1] in (STATIC_SECTION, ROWS_SECTION):
            value = renumbered(value, numbers)  # noqa: PLW2901
        # What lacks nobody knows where lacks everywhere.
        for partition in wanted if owner == b"" and kind == INCOMPLETE else (partition_for(owner, count),):
            if partition in wanted:
                yield partition, key, value


def _owner(kind: bytes, key: bytes) -> bytes:
    """The partition key that an entry of a state is of."""
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
