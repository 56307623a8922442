"""Sends what waiting tables have missed, once their raw topics are open again.

It reads the segments that are held again, in order, for the tables that are ready, and sends their mutations alone.
Their new mutations are held during this time. When it has read as far as the publisher's loop, and Kafka has
acknowledged all of it, the loop sends what follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.commitlog.segment import CommitLogEntry
from cassandra_storage.formats.rows.mutation import only_table
from publisher.inflight import PendingMessages
from publisher.log.batch_reader import SplitEntries
from publisher.log.tail import SegmentTail
from publisher.mutations.messages import Origin
from publisher.mutations.native_splitter import open_catch_up_splitter

if TYPE_CHECKING:
    from publisher.mutations.mutation_decoder import MutationDecoder
    from publisher.parts import KafkaParts, NodeParts
    from publisher.sending.mutation_sender import MutationSender
    from publisher.sending.row_end_sender import RowEndSender
    from publisher.topics.raw_topics import RawTopic
    from publisher.waits import Waits

SLICE_SECONDS = 0.1  # between two rounds of the loop
ACKNOWLEDGE_SECONDS = 1.0
_POLL_SECONDS = 0.01


class _Reading(NamedTuple):
    """A segment that is being read again."""

    tail: SegmentTail
    events: Iterator[CommitLogEntry | SplitEntries]


class CatchUp:
    """Works in slices, so that all other tables go on. Tables that become ready while others catch up are next."""

    def __init__(
        self,
        node: NodeParts,
        kafka: KafkaParts,
        decoder: MutationDecoder,
        sender: MutationSender,
        row_ends: RowEndSender,
    ) -> None:
        self._node = node
        self._waiting = node.waiting
        self._raw_topics = kafka.raw_topics
        self._decoder = decoder
        self._sender = sender
        self._row_ends = row_ends
        self._splitter = open_catch_up_splitter(node.schema, kafka.raw_topics, node.host_id)
        self._tables: dict[bytes, RawTopic] = {}
        self._read_to: dict[int, int] = {}
        self._pendings: dict[int, PendingMessages] = {}
        self._reading: _Reading | None = None

    def advance(self) -> Waits[None]:
        """Send for at most about SLICE_SECONDS."""
        self._release()
        ready = self._waiting.ready()
        self._set_tables({key: found for key, found in self._tables.items() if ready.get(key) is found})
        if not self._tables:
            self._begin(ready)
        if not self._tables:
            return
        deadline = monotonic() + SLICE_SECONDS
        while (segment := self._next_segment()) is not None:
            if not (yield from self._read(segment, deadline)):
                return
        if (yield from self._is_acknowledged()):
            self._end()

    def _begin(self, ready: dict[bytes, RawTopic]) -> None:
        self._stop_reading()
        self._set_tables(ready)
        self._read_to, self._pendings = {}, {}

    def _set_tables(self, tables: dict[bytes, RawTopic]) -> None:
        self._tables = tables
        if self._splitter is not None:
            self._splitter.tables = frozenset(tables)

    def _next_segment(self) -> int | None:
        """The first of the held segments that the loop has read further."""
        for segment in sorted(self._held()):
            if self._place(segment) < self._node.tails.read_up_to(segment):
                return segment
        return None

    def _held(self) -> set[int]:
        return {segment for table_id in self._tables for segment in self._waiting.tables[table_id].held}

    def _place(self, segment: int) -> int:
        """Return up to where the segment is read again."""
        held = (self._waiting.tables[table_id].held.get(segment) for table_id in self._tables)
        first = min(position for position in held if position is not None)
        return self._read_to.get(segment, first)

    def _read(self, segment: int, deadline: float) -> Waits[bool]:
        """Read the segment up to where the loop has read it; False if the time is over."""
        limit = self._node.tails.read_up_to(segment)
        pending = self._pendings.setdefault(segment, PendingMessages())
        is_new = self._reading is None or self._reading.tail.file.id != segment
        for tail, event in self._events(segment):
            is_new = False
            if event.position >= limit:
                break
            if isinstance(event, CommitLogEntry):
                yield from self._send_mutation(tail, event, pending)
            else:
                pending.outstanding += len(event.batch)
                yield from self._sender.send_batch(event, pending)
            self._read_to[segment] = event.end_position
            if monotonic() > deadline or not self._is_current():
                return False
        if is_new:  # it has nothing more; otherwise some may have become durable since it was opened
            self._read_to[segment] = limit
        self._stop_reading()
        return True

    def _is_current(self) -> bool:
        """Return whether no table has begun to wait again."""
        ready = self._waiting.ready()
        return all(ready.get(table_id) is found for table_id, found in self._tables.items())

    def _events(self, segment: int) -> Iterator[tuple[SegmentTail, CommitLogEntry | SplitEntries]]:
        reading = self._reading
        if reading is None or reading.tail.file.id != segment:
            self._stop_reading()
            tail = self._node.tails.open_again(segment, self._place(segment))
            if tail is None:
                self._lose(segment)
                return
            reading = self._reading = _Reading(tail, tail.events(self._splitter))
        for event in reading.events:
            yield reading.tail, event

    def _lose(self, segment: int) -> None:
        for table_id in self._tables:
            if segment in self._waiting.tables[table_id].held:
                self._waiting.lose(table_id)

    def _send_mutation(self, tail: SegmentTail, entry: CommitLogEntry, pending: PendingMessages) -> Waits[None]:
        if only_table(entry.mutation) not in self._tables.keys() | {None}:
            return
        origin = Origin(
            self._node.host_id, tail.file.id, tail.file.path.name, tail.messaging_version, entry.end_position
        )
        decoded = yield from self._decoder.decode(entry, origin)
        messages = [outgoing for outgoing in decoded.messages if outgoing.table.id in self._tables]
        yield from self._row_ends.send_before(messages, origin)
        pending.outstanding += len(messages)
        yield from self._sender.send(messages, pending)

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.tail.close()
            self._reading = None

    def _release(self) -> None:
        """Let finished segments go that Kafka has everything of."""
        for segment, pending in list(self._pendings.items()):
            is_read = self._node.positions.is_finished(segment) and self._is_read(segment)
            if is_read and not pending.outstanding and self._is_current():
                for table_id in self._tables:
                    self._waiting.release(table_id, segment)
                del self._pendings[segment]

    def _is_read(self, segment: int) -> bool:
        return self._read_to.get(segment, 0) >= self._node.tails.read_up_to(segment)

    def _is_acknowledged(self) -> Waits[bool]:
        """Wait a moment for Kafka's acknowledgements, while the loop reads nothing; False if some have not come, or a
        message was refused.
        """
        deadline = monotonic() + ACKNOWLEDGE_SECONDS
        while (left := any(pending.outstanding for pending in self._pendings.values())) and monotonic() < deadline:
            yield _POLL_SECONDS
        return not left and self._is_current()

    def _end(self) -> None:
        """Kafka has all that the loop has read of the tables: the loop goes on with them."""
        lost = [table_id for table_id in self._tables if self._waiting.tables[table_id].has_lost]
        for table_id in self._tables:
            self._raw_topics.open_again(table_id)
            self._waiting.end(table_id)
        if lost:
            self._node.schema.require_snapshots(lost)
        self._tables, self._pendings = {}, {}
