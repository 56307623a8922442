"""Sends the ends of truncated and dropped tables to all their raw partitions (decision 0035).

A `truncate` is sent where it belongs in the log: before the first message of the table from after it or, if there is
none, when all before it has been read. From then on the materializer leaves out what this node writes. When no other
truncation has followed for some time, or the table is dropped, `truncated` is sent, and what the log has of the table
after its place is sent again. A drop has to wait for that, and a table that is created again comes after it.
"""

from __future__ import annotations

from time import time_ns
from typing import TYPE_CHECKING, NamedTuple

import structlog

from cassandra_storage.formats.commitlog.segment import CommitLogPosition
from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.mutation import only_table
from publisher.inflight import PendingMessages
from publisher.mutations.messages import Origin, make_rows_end, split_into_messages
from publisher.tables.row_ends import LAST_POSITION, RowsEnd

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cdc_common.messages.raw import TruncationKind
    from publisher.mutations.messages import OutgoingMessage
    from publisher.parts import NodeParts
    from publisher.sending.mutation_sender import MutationSender
    from publisher.waits import Waits

WAIT_EVERY = 200  # mutations

log = structlog.get_logger(__name__)


class _Begun(NamedTuple):
    end: RowsEnd
    messages: PendingMessages


class RowEndSender:
    """drop_seconds: how long a drop waits for what other nodes' publishers still have of the table."""

    def __init__(self, node: NodeParts, sender: MutationSender, drop_seconds: float) -> None:
        self._node = node
        self._schema = node.schema
        self._ends = node.schema.row_ends
        self._sender = sender
        self._drop_us = drop_seconds * 1e6
        self._read_up_to = node.positions.published_up_to
        self._begun: dict[bytes, _Begun] = {}

    def note_read(self, segment: int, position: int) -> None:
        """The messages of the log up to this place are sent."""
        self._read_up_to = max(self._read_up_to, CommitLogPosition(segment, position))

    def send_before(self, messages: Iterable[OutgoingMessage], origin: Origin) -> Waits[None]:
        """Send the ends that belong before a mutation with these messages.

        One may have been noticed since `send_due`, while a newer schema was read.
        """
        if not self._ends.pending:
            return
        for table_id in self._ends.followed_by_drop:
            yield from self._send_if_due(table_id, self._ends.pending[table_id])
        table_ids = {outgoing.table.id for outgoing in messages}
        for table_id in table_ids:
            self._ends.skip_to_drop(table_id, CommitLogPosition(origin.segment, origin.position))
        for table_id in table_ids & self._ends.unannounced:
            end = self._ends.pending[table_id]
            if (origin.segment, origin.position) > end.position and not self._is_begun(table_id):
                if end.kind == "drop" or self._ends.is_followed_by_drop(table_id):
                    yield from self._send_with_rest(table_id, end)
                else:
                    yield from self._announce(table_id, end)

    def send_due(self) -> Waits[None]:
        """Send the ends whose time has come, and take note of those that are acknowledged."""
        for table_id, (end, messages) in list(self._begun.items()):
            if table_id in self._node.waiting.held_back:
                del self._begun[table_id]  # Kafka has refused some of it
            elif not messages.outstanding:
                del self._begun[table_id]
                self._schema.mark_end_sent(table_id, end)
        for table_id, end in list(self._ends.pending.items()):
            yield from self._send_if_due(table_id, end)

    def _send_if_due(self, table_id: bytes, end: RowsEnd) -> Waits[None]:
        if self._is_begun(table_id) or not self._is_read(end):
            return
        if not (yield from self._sender.is_ready(self._schema.published[table_id])):
            if table_id in self._node.waiting.skipped:
                self._schema.mark_end_sent(table_id, end)
        elif self._ends.is_followed_by_drop(table_id) or self._is_settled(end):
            yield from self._send_with_rest(table_id, end)
        elif end.kind == "truncate" and table_id in self._ends.unannounced:
            yield from self._announce(table_id, end)

    def _is_begun(self, table_id: bytes) -> bool:
        begun = self._begun.get(table_id)
        return begun is not None and begun.end == self._ends.pending.get(table_id)

    def _is_read(self, end: RowsEnd) -> bool:
        """All before it is read: up to its place, or what was durable some time after it was noticed. 3.11 shows a
        segment much later.
        """
        durable_seconds = self._node.durable_seconds
        is_read = durable_seconds is not None and self._node.positions.clock > end.noticed_at + durable_seconds * 1e6
        return is_read or self._read_up_to >= end.position

    def _is_settled(self, end: RowsEnd) -> bool:
        """A truncation: the node shows no other one after it. A drop: other publishers have sent what they have.

        The time of now, or of the last read, may be before the first one if the node's clock was set back.
        """
        if end.kind == "drop":
            return abs(time_ns() // 1000 - end.noticed_at) >= self._drop_us
        return abs(self._ends.records_read_at - end.noticed_at) >= self._node.settle_seconds * 1e6

    def _announce(self, table_id: bytes, end: RowsEnd) -> Waits[None]:
        yield from self._send(table_id, "truncate", end)
        self._schema.mark_end_announced(table_id, end)
        table = self._schema.published[table_id].table.qualified_name
        log.info("a table is truncated", table=table, up_to=list(end.position))

    def _send(self, table_id: bytes, kind: TruncationKind, end: RowsEnd) -> Waits[PendingMessages]:
        pending = PendingMessages(outstanding=1)
        message = make_rows_end(kind, self._schema.published[table_id], self._node.host_id, end)
        yield from self._sender.send([message], pending)
        return pending

    def _send_with_rest(self, table_id: bytes, end: RowsEnd) -> Waits[None]:
        pending = yield from self._send(table_id, "drop" if end.kind == "drop" else "truncated", end)
        self._begun[table_id] = _Begun(end, pending)
        table = self._schema.published[table_id]
        log.info(
            "a table has lost its rows", table=table.table.qualified_name, cause=end.kind, up_to=list(end.position)
        )
        is_back = end.kind == "drop" and table in self._schema.current_tables()
        if is_back and end.position.position == LAST_POSITION:
            self._schema.require_snapshots([table_id])  # the end may be behind the first rows of the table of now
        if end.kind == "drop" or self._read_up_to <= end.position:
            return
        for count, messages in enumerate(self._read_again(table_id, end)):
            pending.outstanding += len(messages)
            yield from self._sender.send(messages, pending)
            if count % WAIT_EVERY == 0:
                yield 0.0
        if self._node.tails.has_lost(end.position.segment_id):
            self._schema.require_snapshots([table_id])

    def _read_again(self, table_id: bytes, end: RowsEnd) -> Iterator[list[OutgoingMessage]]:
        """The messages of the table, mutation by mutation, in the part of the log after the end that has been read."""
        for tail, read_up_to in self._node.tails.read_again(end.position):
            for entry in tail.entries():
                if entry.end_position > read_up_to:
                    break
                if only_table(entry.mutation) not in {None, table_id}:
                    continue
                origin = Origin(
                    self._node.host_id, tail.file.id, tail.file.path.name, tail.messaging_version, entry.end_position
                )
                try:
                    decoded = split_into_messages(entry.mutation, origin, self._schema)
                except FormatError:
                    continue  # it is in quarantine, and its gap message has been sent
                messages = [message for message in decoded.messages if message.table.id == table_id]
                if messages:
                    yield messages
