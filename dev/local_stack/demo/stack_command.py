"""`make stack`: starts everything and stays until Ctrl-C, with a keyspace to play with."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from cdc_common.messages.topics import change_topic
from cdc_common.program.cli import reported_errors
from dev.local_stack.clients import cql
from dev.local_stack.demo import shop, shop_docs
from dev.local_stack.demo.joined_rows import EXAMPLE as JOINED_EXAMPLE
from dev.local_stack.demo.joined_rows import SOURCE, joined_rows
from dev.local_stack.demo.loaded_tables import loaded_tables, query_line
from dev.local_stack.servers.addresses import refuse_second, servers_file
from dev.local_stack.servers.stack import Stack
from dev.local_stack.servers.stack_settings import settings_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dev.local_stack.servers.programs import Program

LOOK_SECONDS = 1.0
ARCHIVED = rf"cdc\.{shop.KEYSPACE}\..*"
QUERY = "SELECT * FROM shop.orders"
EXAMPLE = "INSERT INTO shop.orders (id, customer, status, total) VALUES (1, 'ada', 'new', 9.99)"


@click.command()
def main() -> None:
    """Start real servers, and the programs of a whole pipeline on them, and keep them until Ctrl-C."""
    console = Console(soft_wrap=True, highlight=False)
    with reported_errors():
        try:
            refuse_second()
            stay(console)
        except KeyboardInterrupt:
            console.print("Everything is stopped.")


def stay(console: Console) -> None:
    """Run the stack until Ctrl-C. CdcError when one of the programs ends."""
    report = partial(console.print, style="dim")
    with (
        Stack(static_rows="leave_out", archived=ARCHIVED, report=report) as stack,
        loaded_tables(stack.servers, report) as warehouse,
        joined_rows(stack.servers, report) as joinery,
    ):
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
        console.print(f"  {query_line(QUERY)}    [dim]# its tables, in DuckDB[/]")
        console.print(f"  make follow TABLE={shop.KEYSPACE}.{SOURCE}    [dim]# orders joined with their customers[/]")
        console.print(
            f"  .local/venv/bin/cassandra-materializer status --config {settings_file()}"
            "    [dim]# and every other command[/]"
        )
        console.print(f"\nThe tables, their topics and what each field means: {servers.registry}/watson/")
        console.print(f"\nTo begin with: {EXAMPLE};")
        console.print(f"A customer changes the joined rows of the orders: {JOINED_EXAMPLE};")
        console.print("A table of yours is picked up as it is made: CREATE TABLE ... WITH cdc = true;")
        console.print(f"Tables of {shop.KEYSPACE} are archived. A query of their files follows with the first ones.")
        console.print("Ctrl-C stops everything.")
        watch(console, stack, [warehouse, joinery])


def watch(console: Console, stack: Stack, programs: Sequence[Program]) -> None:
    """Show how to query each table that is archived. CdcError when one of the programs ends."""
    lake = Path(str(stack.archive.settings["archive.location"]))
    shown: set[Path] = set()
    while True:
        time.sleep(LOOK_SECONDS)
        stack.check()
        for program in programs:
            program.check()
        for table in sorted(archived_tables(lake) - shown):
            console.print(f"\n{table.parent.name}.{table.name} has files. To query them:")
            console.print(query_command(table), markup=False)
            shown.add(table)


def archived_tables(lake: Path) -> set[Path]:
    """The folders of the tables that have a file."""
    return {data.parent for data in lake.glob("*/*/data") if next(data.rglob("*.parquet"), None) is not None}


def query_command(table: Path) -> str:
    """A command that shows all changes of a table, by DuckDB."""
    query = f"SELECT _op, after.* FROM '{table}/data/**/*.parquet' ORDER BY _ts_us"  # noqa: S608 - a path of our own
    return f".local/venv/bin/python -c \"import duckdb; duckdb.sql('''{query}''').show()\""


if __name__ == "__main__":
    main()
