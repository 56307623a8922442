"""Waiting until what was written to any tables has come out, whatever their keys are.

A row of a table of its own is written last. Once its change comes, the publisher has sent all that is before it in the
log; then each raw partition has a later heartbeat, and the materializer's group passes it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple, Self

from confluent_kafka import Consumer, TopicPartition

from cdc_common.messages.topics import raw_topic
from dev.local_stack.clients.change_reader import ChangeReader
from dev.verify.model.raw_log import GROUP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.addresses import Servers

MARKER = "settled_marker"
MARKER_SECONDS = 600.0
TOPIC_SECONDS = 60.0  # in which one more topic comes
FOLDED_SECONDS = 180.0  # in which one more raw partition is folded
MARGIN_SECONDS = 0.5  # what was sent before the marker has reached the broker


class RawPlace(NamedTuple):
    topic: str
    partition: int


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
        self._consumer = Consumer({"bootstrap.servers": servers.kafka, "group.id": GROUP, "enable.auto.commit": False})

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
        time.sleep(MARGIN_SECONDS)
        since_ms = int(time.time() * 1000)
        topics = {raw_topic(self._servers.topic_prefix, *table) for table in tables}
        stuck = dict.fromkeys(self._await_topics(topics, check), "it has no raw topic")
        targets = dict.fromkeys(self._places(topics - stuck.keys()), -1)
        progress = Progress(FOLDED_SECONDS)
        while behind := self._behind(targets, since_ms):
            check()
            if progress.has_ended(len(behind)):
                stuck |= {place.topic: "it has no heartbeat, or is not folded" for place in behind}
                break
            time.sleep(0.5)
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

    def _await_topics(self, topics: set[str], check: Callable[[], None]) -> set[str]:
        """The topics that do not come."""
        progress = Progress(TOPIC_SECONDS)
        while missing := topics.difference(self._consumer.list_topics(timeout=10).topics):
            check()
            if progress.has_ended(len(missing)):
                return missing
            time.sleep(0.5)
        return set()

    def _places(self, topics: set[str]) -> list[RawPlace]:
        found = self._consumer.list_topics(timeout=10).topics
        return [RawPlace(topic, at) for topic in sorted(topics) for at in found[topic].partitions]

    def _behind(self, targets: dict[RawPlace, int], since_ms: int) -> list[RawPlace]:
        """The raw partitions that have no message since then, or whose first one is not folded."""
        unknown = [TopicPartition(*place, since_ms) for place, offset in targets.items() if offset < 0]
        for one in self._consumer.offsets_for_times(unknown, timeout=30) if unknown else ():
            targets[RawPlace(one.topic, one.partition)] = one.offset
        asked = [TopicPartition(*place) for place in targets]
        committed = self._consumer.committed(asked, timeout=30) if asked else []
        folded = {RawPlace(one.topic, one.partition): one.offset for one in committed}
        return [place for place, offset in targets.items() if offset < 0 or folded[place] <= offset]
