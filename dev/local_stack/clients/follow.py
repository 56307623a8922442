"""`make follow`: prints the changes of the running stack as they come, each row before and after."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from rich.console import Console

from cdc_common.errors.codes import CdcError, Code
from cdc_common.program.cli import reported_errors
from dev.local_stack.clients import cql
from dev.local_stack.clients.change_reader import ChangeReader
from dev.local_stack.clients.render import change_json, change_text
from dev.local_stack.servers.addresses import read_servers
from filler.settings import FillerSettings

if TYPE_CHECKING:
    from collections.abc import Collection

    from dev.local_stack.servers.addresses import Servers


@click.command()
@click.option("--table", metavar="KEYSPACE.TABLE", help="Only this table.  [default: every table]")
@click.option("--new", is_flag=True, help="Only what comes from now on, not what is there already.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, for pipes.")
def main(table: str | None, *, new: bool, as_json: bool) -> None:
    """Print the changes of the running stack (make stack) until Ctrl-C."""
    with reported_errors(is_service=True):
        servers = read_servers()
        if table is not None and table.count(".") != 1:
            raise CdcError(Code.CONFIG_INVALID, f"{table} is not KEYSPACE.TABLE.", "For example: shop.orders")
        if table is not None:
            _warn(servers, table)
        wanted = tuple(table.split(".")) if table else None
        console = Console(soft_wrap=True)
        with ChangeReader(
            servers.kafka,
            servers.registry,
            servers.topic_prefix,
            lambda keyspace, name: wanted is None or (keyspace, name) == wanted,
            new_only=new,
        ) as reader:
            try:
                _print_all(reader, console, as_json=as_json)
            except KeyboardInterrupt:
                return
            except BrokenPipeError:
                sys.stderr.close()  # whoever read has had enough


def _warn(servers: Servers, table: str) -> None:
    """Say on stderr why nothing will come for now: there is no such table, or its changes are not captured."""
    with cql.connect(servers.cassandra_hosts, servers.cassandra_port) as client:
        note = silence(table, client.tables(), client.cdc_tables())
    if note:
        click.echo(note, err=True)


def silence(table: str, tables: Collection[tuple[str, str]], cdc_tables: Collection[tuple[str, str]]) -> str:
    """Why no change of `table` comes out; empty if changes do. The others are (keyspace, table) of the cluster."""
    keyspace, _, name = table.partition(".")
    if (keyspace, name) in cdc_tables:
        return ""
    if (keyspace, name) in tables:
        return f"{table} has cdc = false, so no change comes out. In make cqlsh: ALTER TABLE {table} WITH cdc = true;"
    known = ", ".join(
        sorted(".".join(cdc_table) for cdc_table in cdc_tables if cdc_table[0] != FillerSettings().keyspace)
    )
    return f"There is no table {table} yet; its changes come out once it is there. Tables with cdc = true: {known}."


def _print_all(reader: ChangeReader, console: Console, *, as_json: bool) -> None:
    while True:
        for change in reader.poll(1.0):
            if as_json:
                sys.stdout.write(change_json(change) + "\n")
            else:
                console.print(change_text(change))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
