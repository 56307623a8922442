"""A table that is filled as fast as Cassandra answers, and the changes of it that have come out."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import click
from confluent_kafka.admin import AdminClient
from rich.progress import track

from dev.bench.topics import message_counter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.addresses import Servers

BATCHES_IN_FLIGHT = 8
MOST_SECONDS = 1200.0
POLL_SECONDS = 0.5


def fill(client: CqlClient, insert: str, batches: Sequence[Iterable[Sequence[object]]], label: str) -> None:
    """Execute the INSERT for the rows of each batch, eight batches at a time. Raises what Cassandra answered first.

    All rows of a batch are of one Cassandra partition.
    """
    prepared = client.prepare(insert)
    free = threading.Semaphore(BATCHES_IN_FLIGHT)
    failures: list[Exception] = []

    def done(error: Exception | None) -> None:
        free.release()
        if error is not None:
            failures.append(error)

    for batch in track(batches, label):
        free.acquire()
        client.submit(client.batch(prepared, batch), (), done)
    for _ in range(BATCHES_IN_FLIGHT):
        free.acquire()
    if failures:
        raise failures[0]


class Changes:
    """The changes of a table: `count()` says how many messages its change topic has."""

    def __init__(self, servers: Servers, table: str) -> None:
        """`table`: `KEYSPACE.TABLE`. Waits until its change topic is there."""
        topic = f"{servers.topic_prefix}.{table}"
        admin = AdminClient({"bootstrap.servers": servers.kafka})
        _wait(lambda: bool(admin.list_topics(topic, 10).topics[topic].partitions), lambda: f"{topic} is not there")
        partitions = admin.list_topics(topic, 10).topics[topic].partitions
        self.count = message_counter(servers.kafka, topic, len(partitions))

    def wait_for(self, wanted: int) -> None:
        """ClickException after 20 minutes."""
        _wait(lambda: self.count() >= wanted, lambda: f"{self.count():,} of {wanted:,} changes have come")


def _wait(is_over: Callable[[], bool], problem: Callable[[], str]) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    while not is_over():
        if time.monotonic() > deadline:
            raise click.ClickException(f"After {MOST_SECONDS:.0f} s {problem()}")
        time.sleep(POLL_SECONDS)
