"""`make follow`: prints the changes of the running stack as they come, each row before and after."""

from __future__ import annotations

import sys

import click
from rich.console import Console

from cdc_program.cli import reported_errors
from cdc_program.errors import CdcError, Code
from local_stack.clients.change_reader import ChangeReader
from local_stack.clients.render import change_json, change_text
from local_stack.servers.addresses import read_servers


@click.command()
@click.option("--table", metavar="KEYSPACE.TABLE", help="Only this table.  [default: every table]")
@click.option("--new", is_flag=True, help="Only what comes from now on, not what is there already.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, for pipes.")
def main(table: str | None, *, new: bool, as_json: bool) -> None:
    """Print the changes of the running stack (make stack) until Ctrl-C."""
    with reported_errors():
        servers = read_servers()
        if table is not None and table.count(".") != 1:
            raise CdcError(Code.CONFIG_INVALID, f"{table} is not KEYSPACE.TABLE.", "For example: shop.orders")
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
