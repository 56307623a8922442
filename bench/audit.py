"""`make bench NAME=audit`: rows per second of `cassandra-materializer audit`.

One stack on this machine: Cassandra, Kafka and the job share its cores with the audit, which has two of Spark's tasks.
No client writes. The time includes Spark's start and its end.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import click
from confluent_kafka.admin import AdminClient
from rich.progress import track

from bench.results import Figures, report
from bench.topics import message_counter
from local_stack.clients import cql
from local_stack.servers.cassandra import OPTIMIZED, CassandraOptions
from local_stack.servers.stack import Stack
from tests.support.e2e.audit_command import audit

if TYPE_CHECKING:
    from collections.abc import Callable

    from local_stack.clients.cql import CqlClient
    from local_stack.servers.addresses import Servers

KEYSPACE, TABLE = "bench", "audited"
COLUMNS = "p int, c int, name text, amount int, price bigint, note text, PRIMARY KEY (p, c)"
ROWS_PER_PARTITION = 100
IN_FLIGHT = 8
MOST_SECONDS = 1200.0


@click.command()
@click.option("--rows", default=200_000, show_default=True, help="Of four columns, 100 in a Cassandra partition.")
@click.option("--slices", default=1, show_default=True, help="As the audit's.")
@click.option("--page-rows", default=500, show_default=True, help="As the audit's.")
def main(rows: int, slices: int, page_rows: int) -> None:
    """Measure the audit of a table."""
    with Stack(options=CassandraOptions(jvm_options=OPTIMIZED), report=click.echo) as stack:
        servers = stack.servers
        with cql.connect(servers.cassandra_hosts, servers.cassandra_port) as client:
            _fill(client, rows)
        _wait_for(_changes_of(servers), rows)
        started = time.monotonic()
        flags = "--slices", str(slices), "--page-rows", str(page_rows)
        audited = audit(stack, f"{KEYSPACE}.{TABLE}", *flags, seconds=MOST_SECONDS)
        seconds = time.monotonic() - started
        [summary] = audited.of("summary")
        if audited.status or summary["rows"] != rows:
            raise click.ClickException(f"The audit found {audited.found[:3]}: {audited.progress[-500:]}")
    figures: Figures = {"rows": rows, "seconds": seconds, "rows per second": rows / seconds}
    report("audit", "The audit of a table", {"audit": figures}, {"slices": slices, "page_rows": page_rows})


def _fill(client: CqlClient, rows: int) -> None:
    client.execute(
        f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
    client.execute(f"CREATE TABLE {KEYSPACE}.{TABLE} ({COLUMNS}) WITH cdc = true")
    insert = client.prepare(
        f"INSERT INTO {KEYSPACE}.{TABLE} (p, c, name, amount, price, note) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608
    )
    free = threading.Semaphore(IN_FLIGHT)
    failures: list[Exception] = []

    def done(error: Exception | None) -> None:
        free.release()
        if error is not None:
            failures.append(error)

    for p in track(range(rows // ROWS_PER_PARTITION), f"Writing {rows:,} rows"):
        free.acquire()
        written = ((p, c, f"name {c}", c, p * c, "x" * 40) for c in range(ROWS_PER_PARTITION))
        client.submit(client.batch(insert, written), (), done)
    for _ in range(IN_FLIGHT):
        free.acquire()
    if failures:
        raise failures[0]


def _changes_of(servers: Servers) -> Callable[[], int]:
    """A function that counts the messages in the change topic."""
    topic = f"{servers.topic_prefix}.{KEYSPACE}.{TABLE}"
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
    time.sleep(0.5)


if __name__ == "__main__":
    main()
