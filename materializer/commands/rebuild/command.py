"""The command `cassandra-materializer rebuild`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cdc_common.clients.registry.confluent import RegistryClient
from materializer.commands.rebuild.rebuild import Rebuild
from materializer.errors import RAW_FAULTS
from stream_runtime.kafka import command_errors

if TYPE_CHECKING:
    from materializer.settings import Settings


def rebuild_table(settings: Settings, table: str, *, is_confirmed: bool) -> None:
    """Rebuild `keyspace.table`, or print what that would do. Then print the operator's next steps."""
    with RegistryClient(settings.registry) as registry, command_errors(f"rebuild {table}", RAW_FAULTS):
        rebuild = Rebuild(settings, table, registry, click.echo)
        if is_confirmed:
            registry.check_reachable()
            rebuild.rebuild_table()
        else:
            for line in rebuild.describe():
                click.echo(line)
            click.echo("Nothing was done. Stop the materializer, then run this again with --yes.")
    for line in _next_steps(table):
        click.echo(line)


def _next_steps(table: str) -> list[str]:
    """Return the lines that tell the operator what to do after the command."""
    keyspace = table.partition(".")[0]
    return [
        'Next, on each node of the CDC datacenter, one after the other (docs/guides/recover.md, "Rebuild a table"):',
        f"  cqlsh -e \"DELETE FROM system.available_ranges_v2 WHERE keyspace_name = '{keyspace}'\"",  # noqa: S608 - for the reader
        "      (3.11: system.available_ranges; otherwise the node refuses or skips what it has already streamed)",
        f"  nodetool rebuild --keyspace {keyspace} -- <another datacenter>",
        "and, before or after that:",
        "  cassandra-materializer run",
    ]
