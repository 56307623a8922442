"""Sends the messages of mutations to their raw topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.messages import raw
from publisher.topics.raw_topics import FULL_QUEUE_SECONDS, send_to_all_raw_partitions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from publisher.inflight import PendingMessages
    from publisher.kafka.sender import Sender
    from publisher.log.batch_reader import SplitEntries
    from publisher.mutations.messages import OutgoingMessage
    from publisher.progress import Progress
    from publisher.tables.published_table import PublishedTable
    from publisher.topics.table_follower import TableFollower
    from publisher.waits import Waits


class MutationSender:
    """Each method waits while the queue to Kafka is full, or for a server that is unreachable."""

    def __init__(self, sender: Sender, tables: TableFollower, progress: Progress) -> None:
        self._sender = sender
        self._tables = tables
        self._progress = progress

    def sendable(self, messages: list[OutgoingMessage], segment: int, position: int) -> Waits[list[OutgoingMessage]]:
        """The messages that can be sent now. Those of waiting tables are held from this position on."""
        if all(self._tables.is_open(outgoing.table) for outgoing in messages):
            return messages
        found = []
        for outgoing in messages:
            if (yield from self._tables.open_unless_waiting(outgoing.table)):
                found.append(outgoing)
            else:
                self._tables.hold_if_waiting(outgoing.table.id, segment, position)
        return found

    def send(self, messages: Iterable[OutgoingMessage], pending: PendingMessages) -> Waits[None]:
        """Send the messages. `pending` counts each of them as one outstanding message."""
        for outgoing in messages:
            if outgoing.is_for_all_raw_partitions:
                yield from self._send_to_all_raw_partitions(outgoing, pending)
            else:
                yield from self._send_by_key(outgoing, pending)

    def is_ready(self, table: PublishedTable) -> Waits[bool]:
        """Return whether the table's messages can be sent now."""
        return self._tables.open_unless_waiting(table)

    def send_batch(self, split: SplitEntries, pending: PendingMessages) -> Waits[None]:
        """Send the messages of a batch, as `send` sends those of a mutation."""
        sent, count = 0, len(split.batch)
        while True:
            before, sent = sent, self._sender.send_batch(split.topics, split.batch, sent, pending)
            self._progress.messages += sent - before
            if sent == count:
                break
            yield FULL_QUEUE_SECONDS
        self._progress.bytes += split.batch.size

    def _send_by_key(self, outgoing: OutgoingMessage, pending: PendingMessages) -> Waits[None]:
        raw_topic = yield from self._tables.raw_topic_of(outgoing.table)
        value = raw.encode(outgoing.message, raw_topic.schema_id)
        while not self._sender.send(raw_topic.name, outgoing.partition_key, value, pending):
            yield FULL_QUEUE_SECONDS
        self._progress.messages += 1
        self._progress.bytes += len(value)

    def _send_to_all_raw_partitions(self, outgoing: OutgoingMessage, pending: PendingMessages) -> Waits[None]:
        """Raw partitions that were added a moment ago must get it too."""
        yield from self._tables.refresh_partition_counts()
        raw_topic = yield from self._tables.raw_topic_of(outgoing.table)
        value = raw.encode(outgoing.message, raw_topic.schema_id)
        yield from send_to_all_raw_partitions(self._sender, raw_topic, value, pending)
        pending.acknowledge()  # one outstanding message was counted for it; those of all raw partitions replace it
