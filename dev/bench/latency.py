"""`make bench NAME=latency`: from a write until its raw message, and until its change, can be read.

One stack on this machine: Cassandra, Kafka, publisher, filler, the Spark job, the writer and the readers share its
cores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import psutil
from rich.progress import track

from dev.bench.results import Figures, report
from dev.bench.timed_table import TICK_SECONDS, WARM_UP_ROWS, Readers, create_table, paced, write
from dev.local_stack.clients import cql
from dev.local_stack.clients.history import percentile
from dev.local_stack.servers.cassandra_options import OPTIMIZED, CassandraOptions
from dev.local_stack.servers.stack import Stack

if TYPE_CHECKING:
    from dev.local_stack.clients.cql import CqlClient

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
            create_table(client)
            write(client, [WARM_UP_ROWS])
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
    sent = write(client, track(paced(rate, ticks), f"{rate:,} writes/s", ticks))
    idle = 1 - psutil.cpu_percent() / 100
    readers.wait_for(sent)
    found: Figures = {"idle_share": idle}
    for name, seen in (("raw", readers.raw), ("change", readers.changes)):
        for share in (50, 99, 99.9):
            found[f"{name} p{share}"] = 1000 * percentile(seen, share / 100)
    return found


if __name__ == "__main__":
    main()
