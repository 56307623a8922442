"""Encodes joined changes: Debezium's envelope, and a tombstone after each deletion."""

from __future__ import annotations

from time import time_ns
from typing import TYPE_CHECKING

from cdc_common.messages import wire
from cdc_common.messages.avro.encoding import NULL, VALUE, encode_array, encode_long, encode_string
from cdc_common.messages.envelope import VERSION
from stream_runtime.records import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from joinery.joining.records import Joined
    from joinery.planning.plan import JoinPlan

CONNECTOR = "joinery"


class JoinedWriter:
    """Writes joined changes to a topic, under a pair of registered schemas."""

    def __init__(self, plan: JoinPlan, topic: str, key_schema_id: int, value_schema_id: int) -> None:
        self.topic = topic
        self.key_header, self.value_header = wire.header(key_schema_id), wire.header(value_schema_id)
        self.inputs = [encode_string(given.name) for given in plan.inputs]
        self.source_start = b"".join(map(encode_string, (VERSION, CONNECTOR, plan.join.name)))

    def ending(self, ts_ms: int | None = None) -> bytes:
        """The end of each value: the time at which it is made, by default now."""
        return VALUE + encode_long(time_ns() // 1_000_000 if ts_ms is None else ts_ms)

    def messages(self, changes: Iterable[Joined], partition: int, ts_ms: int | None = None) -> Iterator[Message]:
        """The messages of changes, in order. ts_ms: the time at which they are made, by default now."""
        ending = self.ending(ts_ms)
        for change in changes:
            key = self.key_header + change.key
            yield Message(self.topic, partition, key, self._value(change) + ending)
            if change.after is None:
                yield Message(self.topic, partition, key, None)

    def _value(self, change: Joined) -> bytes:
        """The value without the time at which it is made."""
        parts = (
            self.value_header,
            _image(change.before),
            _image(change.after),
            self._source(change),
            encode_string(change.op),
        )
        return b"".join(parts)

    def _source(self, change: Joined) -> bytes:
        origin = change.origin
        parts = (
            self.source_start,
            encode_long(origin.ts_us // 1000),
            encode_long(origin.ts_us),
            self.inputs[origin.input],
            encode_string(origin.cause),
            encode_long(change.offset),
            encode_array([NULL if row is None else VALUE + encode_long(row) for row in change.rows]),
        )
        return b"".join(parts)


def _image(row: bytes | None) -> bytes:
    return NULL if row is None else VALUE + row
