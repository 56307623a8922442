"""`make stack`: starts everything and stays until Ctrl-C, with a keyspace to play with."""

from __future__ import annotations

import time

import click
from rich.console import Console

from cdc_common.messages.topics import change_topic
from cdc_common.program.cli import reported_errors
from dev.local_stack.clients import cql
from dev.local_stack.demo import shop, shop_docs
from dev.local_stack.servers.addresses import refuse_second, servers_file
from dev.local_stack.servers.stack import Stack
from dev.local_stack.servers.stack_settings import settings_file

LOOK_SECONDS = 1.0
EXAMPLE = "INSERT INTO shop.orders (id, customer, status, total) VALUES (1, 'ada', 'new', 9.99)"


@click.command()
def main() -> None:
    """Start a real Cassandra, Kafka, registry, publisher and Spark, and keep them until Ctrl-C."""
    console = Console(soft_wrap=True, highlight=False)
    with reported_errors():
        try:
            refuse_second()
            stay(console)
        except KeyboardInterrupt:
            console.print("Everything is stopped.")


def stay(console: Console) -> None:
    """Run the stack until Ctrl-C. CdcError when one of the programs ends."""
    with Stack(static_rows="leave_out", report=lambda text: console.print(text, style="dim")) as stack:
        servers = stack.servers
        with cql.connect(servers.cassandra_hosts, servers.cassandra_port) as client:
            shop.create(client)
        shop_docs.describe(servers.registry, servers.topic_prefix)
        topic = change_topic(servers.topic_prefix, shop.KEYSPACE, "orders")
        console.print(f"\nEverything is up; addresses are in {servers_file()}. In other terminals:\n")
        console.print("  make cqlsh                       [dim]# a CQL shell[/]")
        console.print("  make follow TABLE=shop.orders    [dim]# its changes; every table without TABLE[/]")
        console.print(
            f"  .local/venv/bin/python docs/examples/consumer.py {servers.kafka} {servers.registry} {topic}"
            "    [dim]# your own client, 30 lines[/]"
        )
        console.print(
            f"  .local/venv/bin/cassandra-materializer status --config {settings_file()}"
            "    [dim]# and every other command[/]"
        )
        console.print(f"\nThe tables, their topics and what each field means: {servers.registry}/watson/")
        console.print(f"\nTo begin with: {EXAMPLE};")
        console.print("A table of yours is picked up as it is made: CREATE TABLE ... WITH cdc = true;")
        console.print("Ctrl-C stops everything.")
        while True:
            time.sleep(LOOK_SECONDS)
            stack.check()


if __name__ == "__main__":
    main()
