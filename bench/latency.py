"""`make bench NAME=latency`: from a write until its raw message, and until its change, can be read.

One stack on this machine: Cassandra, Kafka, publisher, filler, the Spark job, the writer and the readers share its
cores. The partition key of each row is the time at which it was sent, so that a reader needs nothing else. Rows are
sent every 10 ms, those of one moment in one batch, which Cassandra splits into a mutation for each.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

import click
import psutil
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from rich.progress import track

from bench.results import Figures, report
from local_stack.clients import cql
from local_stack.clients.history import percentile
from local_stack.servers.cassandra import OPTIMIZED, CassandraOptions
from local_stack.servers.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from local_stack.clients.cql import CqlClient
    from local_stack.servers.addresses import Servers

KEYSPACE, TABLE = "bench", "timed"
TICK_SECONDS = 0.01
SETTLE_SECONDS = 60.0
WARM_UP_ROWS = 200
BUSY_IDLE_SHARE = 0.2


@click.command()
@click.option("--rate", "rates", multiple=True, type=int, default=(100, 1000, 5000), show_default=True)
@click.option("--seconds", default=120, show_default=True, help="For each rate.")
@click.option("--sync-ms", default=100, show_default=True, help="commitlog_sync_period of the node.")
def main(rates: tuple[int, ...], seconds: int, sync_ms: int) -> None:
    """Measure latency at several rates of writes a second."""
    rows: dict[str, Figures] = {}
    options = CassandraOptions(commitlog_sync_period_ms=sync_ms, jvm_options=OPTIMIZED)
    with Stack(options=options, report=click.echo) as stack:
        servers = stack.servers
        with cql.connect(servers.cassandra_hosts, servers.cassandra_port) as client:
            _create_table(client)
            _write(client, [WARM_UP_ROWS])
            with Readers(servers) as readers:
                readers.wait_for(WARM_UP_ROWS)
                for rate in rates:
                    rows[f"{rate:,} writes/s"] = measure(client, readers, rate, seconds)
                    stack.check()
    busy = [name for name, figures in rows.items() if figures["idle_share"] < BUSY_IDLE_SHARE]
    if busy:
        click.echo(f"Less than {BUSY_IDLE_SHARE:.0%} of the CPU was idle at {', '.join(busy)}: the servers lacked CPU.")
    report("latency", f"Latency in ms, commitlog_sync_period {sync_ms} ms", rows, {"seconds": seconds, "busy": busy})


def measure(client: CqlClient, readers: Readers, rate: int, seconds: int) -> Figures:
    readers.clear()
    psutil.cpu_percent()
    ticks = int(seconds / TICK_SECONDS)
    sent = _write(client, track(_paced(rate, ticks), f"{rate:,} writes/s", ticks))
    idle = 1 - psutil.cpu_percent() / 100
    readers.wait_for(sent)
    found: Figures = {"idle_share": idle}
    for name, seen in (("raw", readers.raw), ("change", readers.changes)):
        for share in (50, 99, 99.9):
            found[f"{name} p{share}"] = 1000 * percentile(seen, share / 100)
    return found


def _paced(rate: int, ticks: int) -> Iterator[int]:
    """The number of rows of each tick, at its time; a tick that is late is not left out."""
    started = time.monotonic()
    done = 0
    for tick in range(1, ticks + 1):
        time.sleep(max(0.0, started + tick * TICK_SECONDS - time.monotonic()))
        due = int(rate * tick * TICK_SECONDS)
        yield due - done
        done = due


def _create_table(client: CqlClient) -> None:
    client.execute(
        f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
    client.execute(f"CREATE TABLE {KEYSPACE}.{TABLE} (sent bigint PRIMARY KEY, note text) WITH cdc = true")


def _write(client: CqlClient, ticks: Iterable[int]) -> int:
    """Write so many rows at each tick; their number. Raises what Cassandra answered first."""
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
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
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
    """An Avro record of one long, behind the registry's five bytes."""
    value = shift = 0
    for byte in key[5:]:
        value |= (byte & 0x7F) << shift
        shift += 7
    return (value >> 1) ^ -(value & 1)


if __name__ == "__main__":
    main()
