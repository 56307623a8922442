"""`make bench NAME=neighbour`: how late a table's changes are while another table deletes a partition of 10^6 rows.

One stack on this machine. Both tables go through the same Spark job. The first gets writes at a steady rate for the
whole time; its latencies before the deletion stand beside those until the last of the deletion's changes is out.
"""

from __future__ import annotations

import threading
import time
from itertools import takewhile
from typing import TYPE_CHECKING

import click
import psutil
from confluent_kafka.admin import AdminClient
from rich.progress import track

from bench.results import Figures, report
from bench.timed_table import KEYSPACE, TICK_SECONDS, WARM_UP_ROWS, Readers, create_table, paced, write
from bench.topics import message_counter
from local_stack.clients import cql
from local_stack.clients.history import percentile
from local_stack.servers.cassandra import OPTIMIZED, CassandraOptions
from local_stack.servers.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from local_stack.clients.cql import CqlClient
    from local_stack.servers.addresses import Servers

WIDE = "wide"
PARTITION = 1
ROWS_PER_WRITE = 100
IN_FLIGHT = 8
MOST_SECONDS = 1200.0
POLL_SECONDS = 0.5


@click.command()
@click.option("--rows", default=1_000_000, show_default=True, help="Of the partition that is deleted.")
@click.option("--rate", default=500, show_default=True, help="Writes a second to the other table.")
@click.option("--seconds", default=60, show_default=True, help="Measured before the deletion.")
def main(rows: int, rate: int, seconds: int) -> None:
    """Measure a table's latency before and during the deletion of another table's partition."""
    with Stack(options=CassandraOptions(jvm_options=OPTIMIZED), report=click.echo) as stack:
        servers = stack.servers
        with cql.connect(servers.cassandra_hosts, servers.cassandra_port) as client, Readers(servers) as readers:
            create_table(client)
            write(client, [WARM_UP_ROWS])
            readers.wait_for(WARM_UP_ROWS)
            _fill(client, rows)
            changes = _changes_of(servers)
            _wait_for(changes, rows)
            before = _measure(client, readers, paced(rate, int(seconds / TICK_SECONDS)))
            started = time.monotonic()
            client.execute(f"DELETE FROM {KEYSPACE}.{WIDE} WHERE p = {PARTITION}")  # noqa: S608 - names
            during = _measure(client, readers, _paced_until(rate, changes, 2 * rows))
            during["seconds"] = time.monotonic() - started
            stack.check()
    click.echo(f"p99 during the deletion is {during['change p99'] / before['change p99']:.1f} times p99 before it")
    report("neighbour", f"{rate:,} writes/s beside a deletion", {"before": before, "during": during}, {"rows": rows})


def _fill(client: CqlClient, rows: int) -> None:
    client.execute(f"CREATE TABLE {KEYSPACE}.{WIDE} (p int, c int, note text, PRIMARY KEY (p, c)) WITH cdc = true")
    insert = client.prepare(f"INSERT INTO {KEYSPACE}.{WIDE} (p, c, note) VALUES (?, ?, ?)")  # noqa: S608 - names
    free = threading.Semaphore(IN_FLIGHT)
    failures: list[Exception] = []

    def done(error: Exception | None) -> None:
        free.release()
        if error is not None:
            failures.append(error)

    for first in track(range(0, rows, ROWS_PER_WRITE), f"Writing {rows:,} rows"):
        free.acquire()
        written = range(first, min(first + ROWS_PER_WRITE, rows))
        client.submit(client.batch(insert, ((PARTITION, each, "x" * 50) for each in written)), (), done)
    for _ in range(IN_FLIGHT):
        free.acquire()
    if failures:
        raise failures[0]


def _changes_of(servers: Servers) -> Callable[[], int]:
    """A function that counts the messages in the wide table's change topic."""
    topic = f"{servers.topic_prefix}.{KEYSPACE}.{WIDE}"
    admin = AdminClient({"bootstrap.servers": servers.kafka})
    deadline = time.monotonic() + MOST_SECONDS
    while not (partitions := admin.list_topics(topic, 10).topics[topic].partitions):
        _check(deadline, f"{topic} is not there")
    return message_counter(servers.kafka, topic, len(partitions))


def _wait_for(changes: Callable[[], int], wanted: int) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    while (found := changes()) < wanted:
        _check(deadline, f"{found:,} of {wanted:,} changes have come")


def _check(deadline: float, problem: str) -> None:
    if time.monotonic() > deadline:
        raise click.ClickException(f"After {MOST_SECONDS:.0f} s {problem}")
    time.sleep(POLL_SECONDS)


def _paced_until(rate: int, changes: Callable[[], int], wanted: int) -> Iterator[int]:
    """The number of rows of each tick until so many changes are out."""
    over = threading.Event()

    def watch() -> None:
        _wait_for(changes, wanted)
        over.set()

    threading.Thread(target=watch, daemon=True).start()
    ticks = paced(rate, int(MOST_SECONDS / TICK_SECONDS))
    return takewhile(lambda _: not over.is_set(), ticks)


def _measure(client: CqlClient, readers: Readers, ticks: Iterator[int]) -> Figures:
    readers.clear()
    psutil.cpu_percent()
    sent = write(client, ticks)
    idle = 1 - psutil.cpu_percent() / 100
    readers.wait_for(sent)
    found: Figures = {"writes": sent, "idle_share": idle}
    return found | {f"change p{share}": 1000 * percentile(readers.changes, share / 100) for share in (50, 99, 99.9)}


if __name__ == "__main__":
    main()
