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

from dev.bench.filled_table import MOST_SECONDS, Changes, fill
from dev.bench.results import Figures, report
from dev.bench.timed_table import KEYSPACE, TICK_SECONDS, WARM_UP_ROWS, Readers, create_table, paced, write
from dev.local_stack.clients import cql
from dev.local_stack.clients.history import percentile
from dev.local_stack.servers.cassandra_options import OPTIMIZED, CassandraOptions
from dev.local_stack.servers.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dev.local_stack.clients.cql import CqlClient

WIDE = "wide"
PARTITION = 1
ROWS_PER_WRITE = 100


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
            changes = Changes(servers, f"{KEYSPACE}.{WIDE}")
            changes.wait_for(rows)
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
    batches = [
        [(PARTITION, number, "x" * 50) for number in range(first, min(first + ROWS_PER_WRITE, rows))]
        for first in range(0, rows, ROWS_PER_WRITE)
    ]
    fill(
        client,
        f"INSERT INTO {KEYSPACE}.{WIDE} (p, c, note) VALUES (?, ?, ?)",  # noqa: S608 - names
        batches,
        f"Writing {rows:,} rows",
    )


def _paced_until(rate: int, changes: Changes, wanted: int) -> Iterator[int]:
    """The number of rows of each tick until so many changes are out."""
    over = threading.Event()

    def watch() -> None:
        changes.wait_for(wanted)
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
