"""`make bench NAME=audit`: rows per second of `cassandra-materializer audit`.

One stack on this machine: Cassandra, Kafka and the job share its cores with the audit, which has two of Spark's tasks.
No client writes. The time includes Spark's start and its end.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from dev.bench.filled_table import MOST_SECONDS, Changes, fill
from dev.bench.results import Figures, report
from dev.local_stack.clients import cql
from dev.local_stack.servers.cassandra_options import OPTIMIZED, CassandraOptions
from dev.local_stack.servers.stack import Stack
from tests.support.e2e.audit_command import RunningAudit

if TYPE_CHECKING:
    from dev.local_stack.clients.cql import CqlClient

KEYSPACE, TABLE = "bench", "audited"
COLUMNS = "p int, c int, name text, amount int, price bigint, note text, PRIMARY KEY (p, c)"
ROWS_PER_PARTITION = 100


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
        Changes(servers, f"{KEYSPACE}.{TABLE}").wait_for(rows)
        started = time.monotonic()
        flags = "--slices", str(slices), "--page-rows", str(page_rows)
        audited = RunningAudit(stack, f"{KEYSPACE}.{TABLE}", *flags).wait(MOST_SECONDS)
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
    partitions = range(rows // ROWS_PER_PARTITION)
    fill(
        client,
        f"INSERT INTO {KEYSPACE}.{TABLE} (p, c, name, amount, price, note) VALUES (?, ?, ?, ?, ?, ?)",  # noqa: S608
        [[(p, c, f"name {c}", c, p * c, "x" * 40) for c in range(ROWS_PER_PARTITION)] for p in partitions],
        f"Writing {rows:,} rows",
    )


if __name__ == "__main__":
    main()
