"""Waiting until what was written to any tables has come out, whatever their keys are.

A row of a table of its own is written last. Once its change comes, the publisher has read all that is before it in the
log. The next watermark of each publisher says that Kafka has acknowledged it, so it lies before the ends of the raw
partitions that are asked for then. The materializer's group reaches these ends, and its positions say that nothing is
left to do (decision 0048).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from cdc_common.messages import watermarks
from cdc_common.messages.topics import raw_topic, watermarks_topic
from dev.local_stack.clients.change_reader import ChangeReader
from dev.verify.model.raw_log import GROUP
from materializer.errors import RAW_FAULTS
from materializer.records import RawPartition
from stream_runtime.exactly_once import position

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from types import TracebackType

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.addresses import Servers

MARKER = "settled_marker"
MARKER_SECONDS = 600.0
NAMED_SECONDS = 60.0  # in which watermarks name one more table
FOLDED_SECONDS = 180.0  # in which one more raw partition is folded
KAFKA_SECONDS = 30.0


class Target(NamedTuple):
    """The position that the job must reach in a raw partition."""

    # The offset after the last message that must be folded.
    end: int
    # The time, in ms, up to which all that is due must be done.
    now_ms: int

    def is_reached(self, committed: TopicPartition) -> bool:
        """Whether the committed offset is so far, and the position beside it has no work left."""
        if not self.end:
            return True
        if committed.offset < self.end:
            return False
        where = RawPartition(committed.topic, committed.partition)
        rest = position.decode(committed.offset, committed.metadata, where, RAW_FAULTS).rest
        return rest is not None and rest.purge_ms != 0 and (rest.due_ms is None or rest.due_ms > self.now_ms)


def unnamed(tables: Mapping[str, bytes], parts: Collection[watermarks.Watermark], since_us: int) -> set[str]:
    """The topics whose table not all hosts say to be published up to this time. tables: the ids of tables by topic.
    parts: the newest watermarks. A host with many tables has several.
    """
    hosts = {part.host_id for part in parts}
    named = {
        (part.host_id, table_id) for part in parts for table_id, table in part.tables.items() if table.clock > since_us
    }
    return {
        topic for topic, table_id in tables.items() if not hosts or not {(host, table_id) for host in hosts} <= named
    }


class Progress:
    """Notices that a count has not changed for a time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._count = -1
        self._since = 0.0

    def has_ended(self, count: int) -> bool:
        now = time.monotonic()
        if count != self._count:
            self._count, self._since = count, now
        return now - self._since > self._seconds


class TopicSettler:
    """A context manager; the marker's table is made once, and stays."""

    def __init__(self, client: CqlClient, servers: Servers, replication: str, push: Callable[[], None]) -> None:
        self._client = client
        self._servers = servers
        self._push = push
        self._number = int(time.time())  # no settler before this one has written it
        client.execute(f"CREATE KEYSPACE IF NOT EXISTS {MARKER} WITH replication = {replication}")
        client.execute(f"CREATE TABLE IF NOT EXISTS {MARKER}.rows (id int PRIMARY KEY) WITH cdc = true")
        self._reader = ChangeReader.of_keyspace(servers, MARKER)
        self._parts: dict[bytes, watermarks.Watermark] = {}  # by the keys of their messages
        self._consumer = Consumer({"bootstrap.servers": servers.kafka, "group.id": GROUP, "enable.auto.commit": False})
        self._consumer.assign([TopicPartition(watermarks_topic(servers.topic_prefix), 0, OFFSET_BEGINNING)])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.close()
        self._consumer.close()

    def wait_until_settled(self, tables: Iterable[tuple[str, str]], check: Callable[[], None]) -> dict[str, str]:
        """Return when all that was written to the tables before now is in the change topics. The result are raw topics
        that stand still, and why. `check` raises if a program has ended. AssertionError if nothing at all comes.
        """
        self._await_marker(check)
        since_us = time.time_ns() // 1000
        topics = {raw_topic(self._servers.topic_prefix, *table): table for table in tables}
        unnamed_topics = self._await_watermarks(
            {topic: self._id(table) for topic, table in topics.items()}, since_us, check
        )
        stuck = dict.fromkeys(unnamed_topics, "no watermark names its table")
        left = self._targets(topics.keys() - unnamed_topics, since_us // 1000)
        progress = Progress(FOLDED_SECONDS)
        while left := self._behind(left):
            check()
            if progress.has_ended(len(left)):
                return stuck | {place.topic: "it is not folded" for place in left}
            time.sleep(0.2)
        return stuck

    def _await_marker(self, check: Callable[[], None]) -> None:
        """Write a row, and wait until its change comes: all before it in the log has been published."""
        self._number += 1
        self._client.execute_at_all(f"INSERT INTO {MARKER}.rows (id) VALUES ({self._number})")
        self._push()
        deadline = time.monotonic() + MARKER_SECONDS
        while not any(change.key["id"] == self._number for change in self._reader.poll(0.5)):
            assert time.monotonic() < deadline, "the marker's change does not come"
            check()

    def _id(self, table: tuple[str, str]) -> bytes:
        query = "SELECT id FROM system_schema.tables WHERE keyspace_name = %s AND table_name = %s"
        [row] = self._client.execute(query, table)
        found: bytes = row["id"].bytes
        return found

    def _await_watermarks(self, tables: Mapping[str, bytes], since_us: int, check: Callable[[], None]) -> set[str]:
        """The topics whose tables the watermarks do not name."""
        progress = Progress(NAMED_SECONDS)
        while missing := unnamed(tables, self._parts.values(), since_us):
            check()
            if progress.has_ended(len(missing)):
                return missing
            for message in self._consumer.consume(500, 0.2):
                if message.error() is not None:
                    raise KafkaException(message.error())
                self._parts[message.key() or b""] = watermarks.decode(message.value() or b"")
        return set()

    def _targets(self, topics: Iterable[str], now_ms: int) -> dict[RawPartition, Target]:
        found = self._consumer.list_topics(timeout=KAFKA_SECONDS).topics
        places = [RawPartition(topic, at) for topic in sorted(topics) for at in found[topic].partitions]
        ends = {
            place: self._consumer.get_watermark_offsets(TopicPartition(*place), timeout=KAFKA_SECONDS)
            for place in places
        }
        return {place: Target(end, now_ms) for place, (_, end) in ends.items()}

    def _behind(self, targets: Mapping[RawPartition, Target]) -> dict[RawPartition, Target]:
        """The raw partitions that have not reached their targets."""
        asked = [TopicPartition(*place) for place in targets]
        committed = self._consumer.committed(asked, timeout=KAFKA_SECONDS) if asked else []
        places = {RawPartition(one.topic, one.partition): one for one in committed}
        return {place: target for place, target in targets.items() if not target.is_reached(places[place])}
