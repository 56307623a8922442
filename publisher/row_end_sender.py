"""Sends the ends of truncated and dropped tables to all their raw partitions (docs/decisions/0035).

An end is sent where it belongs in the log: before the first message of the table from after it or, if there is none,
when all before it has been read. An end that is noticed later than that is sent at once, and what the log has of the
table after it is sent again: the materializer deletes it with the rest.
"""

from __future__ import annotations

from time import time_ns
from typing import TYPE_CHECKING, NamedTuple

import structlog

from cassandra_storage.commitlog import CommitLogPosition
from cassandra_storage.errors import FormatError
from cassandra_storage.mutation import only_table
from publisher.inflight import PendingMessages
from publisher.messages import Origin, make_rows_end, split_into_messages
from publisher.row_ends import LAST_POSITION, RowsEnd

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from publisher.messages import OutgoingMessage
    from publisher.mutation_sender import MutationSender
    from publisher.sides import NodeSide

log = structlog.get_logger(__name__)


class _Begun(NamedTuple):
    end: RowsEnd
    messages: PendingMessages


class RowEndSender:
    """drop_seconds: how long a drop waits for what other nodes' publishers still have of the table."""

    def __init__(self, node: NodeSide, sender: MutationSender, drop_seconds: float) -> None:
        self._node = node
        self._schema = node.schema
        self._sender = sender
        self._drop_seconds = drop_seconds
        self._read_up_to = node.positions.published_up_to
        self._begun: dict[bytes, _Begun] = {}

    def note_read(self, segment: int, position: int) -> None:
        """The messages of the log up to this place are sent."""
        self._read_up_to = max(self._read_up_to, CommitLogPosition(segment, position))

    def send_before(self, messages: Iterable[OutgoingMessage], origin: Origin) -> None:
        """Send the ends that belong before a mutation with these messages.

        One may have been noticed since `follow`, while a newer schema was read.
        """
        if not self._schema.row_ends.pending:
            return
        for table_id in {outgoing.table.id for outgoing in messages}:
            end = self._schema.row_ends.pending.get(table_id)
            if end is not None and (origin.segment, origin.position) > end.position and not self._is_begun(table_id):
                self._send_with_rest(table_id, end)

    def follow(self) -> None:
        """Send the ends whose time has come, and take note of those that are acknowledged."""
        for table_id, (end, messages) in list(self._begun.items()):
            if not messages.outstanding:
                del self._begun[table_id]
                self._schema.mark_end_sent(table_id, end)
        for table_id, end in list(self._schema.row_ends.pending.items()):
            if self._is_begun(table_id):
                continue
            if self._is_due(end):
                self._send_with_rest(table_id, end)

    def _is_begun(self, table_id: bytes) -> bool:
        begun = self._begun.get(table_id)
        return begun is not None and begun.end == self._schema.row_ends.pending.get(table_id)

    def _is_due(self, end: RowsEnd) -> bool:
        """All before it is read: up to its place, or what was durable some time after it was noticed. 3.11 shows a
        segment much later.
        """
        if end.kind == "drop" and time_ns() // 1000 < end.noticed_at + self._drop_seconds * 1e6:
            return False
        durable_seconds = self._node.durable_seconds
        is_read = durable_seconds is not None and self._node.positions.clock > end.noticed_at + durable_seconds * 1e6
        return is_read or self._read_up_to >= end.position

    def _send(self, table_id: bytes, end: RowsEnd) -> PendingMessages:
        table = self._schema.published[table_id]
        pending = PendingMessages(outstanding=1)
        self._begun[table_id] = _Begun(end, pending)
        log.info(
            "a table has lost its rows", table=table.table.qualified_name, cause=end.kind, up_to=list(end.position)
        )
        self._sender.send([make_rows_end(table, self._node.host_id, end)], pending)
        is_back = end.kind == "drop" and table in self._schema.current_tables()
        if is_back and end.position.position == LAST_POSITION:
            self._schema.require_snapshot(table_id)  # the end may be behind the first rows of the table of now
        return pending

    def _send_with_rest(self, table_id: bytes, end: RowsEnd) -> None:
        pending = self._send(table_id, end)
        if end.kind == "drop" or self._read_up_to <= end.position:
            return
        if self._node.tails.has_lost(end.position.segment_id):
            self._schema.require_snapshot(table_id)
        for messages in self._read_again(table_id, end):
            pending.outstanding += len(messages)
            self._sender.send(messages, pending)

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
                messages = [each for each in decoded.messages if each.table.id == table_id]
                if messages:
                    yield messages
