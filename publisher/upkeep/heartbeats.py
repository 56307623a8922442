"""Tells the materializer how far this node's log is published: one message for all raw partitions (decision 0048)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.messages import watermarks
from cdc_common.messages.watermarks import TableWatermark, Watermark
from publisher.inflight import PendingMessages

if TYPE_CHECKING:
    from publisher.parts import KafkaParts, NodeParts


class WatermarkSender:
    """Sends this node's watermark every `seconds`; never if that is 0."""

    def __init__(self, seconds: float, node: NodeParts, kafka: KafkaParts) -> None:
        self._seconds = seconds
        self._node = node
        self._raw_topics = kafka.raw_topics
        self._sender = kafka.sender
        self._next = 0.0

    def send_if_due(self, now: float) -> None:
        """Stop at a full queue: the watermark stays due."""
        if not self._seconds or now < self._next:
            return
        for key, value in watermarks.encode(self._watermark()):
            if not self._sender.send(self._raw_topics.watermarks_topic, key, value, PendingMessages(outstanding=1)):
                return
        self._next = now + self._seconds

    def _watermark(self) -> Watermark:
        """Return how far Kafka has acknowledged the tables that can be published. It says nothing of others."""
        positions, schema, waiting = self._node.positions, self._node.schema, self._node.waiting
        tables = {
            table.id: TableWatermark(table.digest, schema.row_ends.clock_before(table.id, positions.clock))
            for table in schema.current_tables()
            if self._raw_topics.find_open(table) is not None and table.id not in waiting.held_back
        }
        return Watermark(self._node.host_id, positions.clock, *positions.published_up_to, tables)
