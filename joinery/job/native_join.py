"""The native core's way from messages of an internal topic to joined changes, as messages of the target.

It makes the same bytes as `join_chunk` and JoinedWriter, which do what the core does not take: a message in parts, one
whose fan-out is large, and one that cannot be joined.
"""

from __future__ import annotations

from array import array
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import cdc_native
from joinery.joining.layout import BEGUN, CONTINUATION, PHASE, SENDING
from joinery.joining.records import Sizes
from stream_runtime.source_batch import MessageGroup, MessageGroups

IS_NATIVE = cdc_native.is_enabled()
if IS_NATIVE:
    from cdc_native.avro.messages import Messages
    from cdc_native.joins.join import ChunkJoin
    from cdc_native.joins.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from joinery.joining.records import Rule as JoinRule
    from joinery.output.messages import JoinedWriter
    from stream_runtime.records import Record
    from stream_runtime.state.reader import StateReader

MOST_ROWS = 10_000  # of a group, which the core keeps in memory for a message; more are read one by one, by Python code


class NativeChunk(NamedTuple):
    """The result of a chunk, or of its first messages."""

    # The writes to the state; None deletes a key.
    writes: dict[bytes, bytes | None]
    # The messages of the changes.
    messages: MessageGroups
    # How many changes they are of.
    changes: int
    # How many messages, from the end, are left.
    left: int
    # How many messages had a version that the state has already, or a newer one.
    late: int
    # The sizes of the groups that the messages have met.
    sizes: Sizes


class NativeJoin:
    """Joins messages of one partition of an internal topic."""

    def __init__(self, rule: JoinRule, writer: JoinedWriter, partition: int) -> None:
        """partition: of the target."""
        inputs = zip(rule.optional, rule.absent_idents, rule.absent_columns, writer.inputs, strict=True)
        headers = writer.key_header, writer.value_header
        most_rows = min(rule.most_rows, MOST_ROWS)
        self._rule = Rule(inputs, most_rows, headers, writer.source_start, rule.definition)
        self._writer = writer
        self._partition = partition

    def join(
        self, state: StateReader, records: Sequence[Record], most_bytes: int, ts_ms: int | None = None
    ) -> NativeChunk | None:
        """Join the messages, or the first of them; None if the first one is the Python code's.

        most_bytes, ts_ms: as of join_chunk and of JoinedWriter.messages.
        """
        chunk = ChunkJoin(
            self._rule,
            Messages.of([record.key for record in records]),
            Messages.of([record.value for record in records]),
            array("q", [record.offset for record in records]),
            most_bytes,
            self._writer.ending(ts_ms),
        )
        keys = chunk.keys()
        assert keys[:2] == [CONTINUATION, PHASE]
        values = state.get_many(keys)
        if values[0] is not None or (values[1] or BEGUN).startswith(SENDING):
            return None
        chunk.load(values)
        while (wanted := chunk.join()) is not None:
            chunk.load_rows(list(islice(state.scan(*wanted), MOST_ROWS + 1)), MOST_ROWS)
        if not chunk.done:
            return None
        groups = [MessageGroup(self._writer.topic, *chunk.messages())]
        left = len(records) - chunk.done
        made = MessageGroups(self._partition, groups)
        return NativeChunk(chunk.writes(), made, chunk.changes, left, chunk.late, Sizes(*chunk.sizes))
