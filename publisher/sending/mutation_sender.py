"""Sends the messages of mutations to their raw topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_messages import raw
from publisher.topics.raw_topics import send_to_all_raw_partitions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from publisher.inflight import PendingMessages
    from publisher.kafka.sender import Sender
    from publisher.log.batch_reader import SplitEntries
    from publisher.mutations.messages import OutgoingMessage
    from publisher.progress import Progress
    from publisher.tables.node_schema import PublishedTable
    from publisher.topics.table_follower import TableFollower
    from publisher.upkeep.housekeeping import Housekeeping

FULL_QUEUE_SECONDS = 0.1


class MutationSender:
    """Does the housekeeping while the queue to Kafka is full."""

    def __init__(self, sender: Sender, tables: TableFollower, housekeeping: Housekeeping, progress: Progress) -> None:
        self._sender = sender
        self._tables = tables
        self._housekeeping = housekeeping
        self._progress = progress

    def send(self, messages: Iterable[OutgoingMessage], pending: PendingMessages) -> None:
        """Send the messages. `pending` counts each of them as one outstanding message."""
        for outgoing in messages:
            if outgoing.is_for_all_raw_partitions:
                self._send_to_all_raw_partitions(outgoing, pending)
            else:
                self._send_by_key(outgoing, pending)

    def is_ready(self, table: PublishedTable) -> bool:
        """Whether the table's messages can be sent now."""
        return self._tables.is_open(table)

    def wait(self, seconds: float) -> None:
        """Handle acknowledgements for up to so many seconds, or until the first ones."""
        self._housekeeping.serve(seconds)

    def send_batch(self, split: SplitEntries, pending: PendingMessages) -> None:
        """Send the messages of a batch, as `send` sends those of a mutation."""
        sent, count = 0, len(split.batch)
        while True:
            before, sent = sent, self._sender.send_batch(split.topics, split.batch, sent, pending)
            self._progress.messages += sent - before
            if sent == count:
                break
            self._wait_for_room()
        self._progress.bytes += split.batch.size

    def _send_by_key(self, outgoing: OutgoingMessage, pending: PendingMessages) -> None:
        raw_topic = self._tables.raw_topic_of(outgoing.table)
        value = raw.encode(outgoing.message, raw_topic.schema_id)
        self._send_value(raw_topic.name, outgoing.partition_key, value, pending)

    def _send_value(self, topic: str, key: bytes, value: bytes, pending: PendingMessages) -> None:
        while not self._sender.send(topic, key, value, pending):
            self._wait_for_room()
        self._progress.messages += 1
        self._progress.bytes += len(value)

    def _send_to_all_raw_partitions(self, outgoing: OutgoingMessage, pending: PendingMessages) -> None:
        """Raw partitions that were added a moment ago must get it too."""
        self._tables.refresh_partition_counts()
        raw_topic = self._tables.raw_topic_of(outgoing.table)
        value = raw.encode(outgoing.message, raw_topic.schema_id)
        send_to_all_raw_partitions(self._sender, raw_topic, value, pending, self._wait_for_room)
        pending.acknowledge()  # one outstanding message was counted for it; those of all raw partitions replace it

    def _wait_for_room(self) -> None:
        self._housekeeping.serve(FULL_QUEUE_SECONDS)
