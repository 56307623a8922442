"""A table whose rows say when they were sent: written at a pace, and followed through both topics.

The partition key of a row is the time at which it was sent, so that a reader needs nothing else. Rows are sent every
10 ms, those of one moment in one batch, which Cassandra splits into a mutation for each.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

import click
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.addresses import Servers

KEYSPACE, TABLE = "bench", "timed"
TICK_SECONDS = 0.01
SETTLE_SECONDS = 60.0
WARM_UP_ROWS = 200


def paced(rate: int, ticks: int) -> Iterator[int]:
    """The number of rows of each tick, at its time; a tick that is late is not left out."""
    started = time.monotonic()
    done = 0
    for tick in range(1, ticks + 1):
        time.sleep(max(0.0, started + tick * TICK_SECONDS - time.monotonic()))
        due = int(rate * tick * TICK_SECONDS)
        yield due - done
        done = due


def create_table(client: CqlClient) -> None:
    client.execute(
        f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
    client.execute(f"CREATE TABLE {KEYSPACE}.{TABLE} (sent bigint PRIMARY KEY, note text) WITH cdc = true")


def write(client: CqlClient, ticks: Iterable[int]) -> int:
    """Write so many rows at each tick. Their number, once all are answered. Raises what Cassandra answered first."""
    insert = client.prepare(f"INSERT INTO {KEYSPACE}.{TABLE} (sent, note) VALUES (?, ?)")  # noqa: S608 - names
    failures: list[Exception] = []
    pending = 0
    changed = threading.Condition()

    def done(error: Exception | None) -> None:
        nonlocal pending
        with changed:
            pending -= 1
            if error is not None:
                failures.append(error)
            changed.notify()

    total = last = 0
    for count in ticks:
        if not count:
            continue
        first = last = max(last + 1, time.time_ns() // 1000)
        last += count - 1
        with changed:
            pending += 1
        client.submit(client.batch(insert, ((sent, "x" * 100) for sent in range(first, last + 1))), (), done)
        total += count
    with changed:
        changed.wait_for(lambda: not pending)
    if failures:
        raise failures[0]
    return total


class Readers:
    """Follows the raw topic and the change topic, each in a thread; `raw` and `changes` are latencies in seconds."""

    def __init__(self, servers: Servers) -> None:
        self.raw: list[float] = []
        self.changes: list[float] = []
        self._over = threading.Event()
        prefix, name = servers.topic_prefix, f"{KEYSPACE}.{TABLE}"
        self._threads = [
            threading.Thread(target=self._follow, args=(servers.kafka, topic, found, sent_at), daemon=True)
            for topic, found, sent_at in (
                (f"{prefix}.raw.{name}", self.raw, _key_of_raw),
                (f"{prefix}.{name}", self.changes, _key_of_change),
            )
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def clear(self) -> None:
        self.raw.clear()
        self.changes.clear()

    def wait_for(self, count: int) -> None:
        deadline = time.monotonic() + SETTLE_SECONDS
        while min(len(self.raw), len(self.changes)) < count:
            if time.monotonic() > deadline:
                raise click.ClickException(
                    f"{len(self.raw):,} raw messages and {len(self.changes):,} changes of {count:,} writes have come"
                )
            time.sleep(0.1)

    def _follow(self, bootstrap: str, topic: str, found: list[float], sent_at: Callable[[bytes], int]) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "bench",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 5,
            }
        )
        while not (partitions := consumer.list_topics(topic, 10).topics[topic].partitions):
            time.sleep(0.1)
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
        while not self._over.is_set():
            messages = consumer.consume(1000, 0.1)
            now = time.time()
            for message in messages:
                key = message.key()
                if message.error() is None and key:  # heartbeats have no key
                    found.append(now - sent_at(key) / 1e6)
        consumer.close()


def _key_of_raw(key: bytes) -> int:
    return int.from_bytes(key, "big")


def _key_of_change(key: bytes) -> int:
    """An Avro record of one long, after the registry's five bytes."""
    value = shift = 0
    for byte in key[5:]:
        value |= (byte & 0x7F) << shift
        shift += 7
    return (value >> 1) ^ -(value & 1)
