"""The command `cassandra-materializer rebuild`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cdc_program.registry import RegistryClient
from materializer.commands.rebuild import Rebuild, next_steps
from materializer.kafka import command_errors

if TYPE_CHECKING:
    from cdc_program.settings import Settings


def rebuild(settings: Settings, table: str, *, is_meant: bool) -> None:
    """Make `keyspace.table` start over, or say what that would be."""
    with RegistryClient(settings.registry) as registry, command_errors(f"rebuild {table}"):
        work = Rebuild(settings, table, registry, click.echo)
        if is_meant:
            registry.check_reachable()
            work.run()
        else:
            for line in work.survey():
                click.echo(line)
            click.echo("Nothing was done. Stop the materializer, then do it with --yes.")
    for line in next_steps(table):
        click.echo(line)
