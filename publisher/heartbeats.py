"""Heartbeats to the raw partitions: when each is due, and sending them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_messages import raw
from publisher.messages import Origin, make_heartbeat

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from publisher.raw_topics import RawTopic
    from publisher.sides import KafkaSide, NodeSide


BUSY_PERIODS = 6  # a busy raw partition gets heartbeats too, but this many times less often


class HeartbeatSchedule:
    """A raw partition is idle since it was first seen, or since its last message or heartbeat."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: dict[tuple[str, int], float] = {}

    def due_partitions(
        self, raw_topics: Iterable[RawTopic], last_sent: Mapping[tuple[str, int], float], now: float
    ) -> Iterator[tuple[RawTopic, int]]:
        """The raw partitions that need a heartbeat now. If the caller stops the iteration, the current one and the rest
        stay due. `last_sent`: when each (topic, raw partition) last got a message, by the same clock as `now`.
        """
        if not self._seconds:
            return
        for raw_topic in raw_topics:
            for raw_partition in range(raw_topic.partitions):
                place = raw_topic.name, raw_partition
                since = self._since.setdefault(place, now)
                idle_since = max(last_sent.get(place, 0.0), since)
                if now - idle_since >= self._seconds or now - since >= BUSY_PERIODS * self._seconds:
                    yield raw_topic, raw_partition
                    self._since[place] = now


class HeartbeatSender:
    """Tells the raw partitions how far this node's log is published."""

    def __init__(self, seconds: float, node: NodeSide, kafka: KafkaSide) -> None:
        self._schedule = HeartbeatSchedule(seconds)
        self._node = node
        self._raw_topics = kafka.raw_topics
        self._sender = kafka.sender

    def send_due(self, now: float) -> None:
        """Stop at a full queue: the rest stays due. Otherwise the queue would be full for the same ones each time."""
        segment, position = self._node.positions.published_up_to
        origin = Origin(self._node.host_id, segment, "", 0, position)
        opened = [self._raw_topics.find_open(table) for table in self._node.schema.current_tables()]
        due = self._schedule.due_partitions(filter(None, opened), self._sender.last_sent, now)
        for raw_topic, raw_partition in due:
            clock = self._node.schema.row_ends.clock_before(raw_topic.table.id, self._node.positions.clock)
            message = make_heartbeat(raw_topic.table, origin, clock)
            value = raw.encode(message, raw_topic.schema_id)
            if not self._sender.send_to_raw_partition(raw_topic.name, raw_partition, value):
                break
