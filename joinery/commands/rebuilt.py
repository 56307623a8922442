"""Rebuilds joins, for the command `rebuild`."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import click

from joinery.catalogue import open_catalogue
from joinery.commands.audited import chosen_joins
from joinery.faults import JOIN_FAULTS
from joinery.job.planner import JoinPlanner
from joinery.job.run import definitions_of
from joinery.rebuild.rebuild import Rebuild
from stream_runtime.kafka import command_errors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from joinery.settings import Settings


def rebuild_joins(settings: Settings, file: Path, names: Sequence[str], *, is_confirmed: bool) -> None:
    """Rebuild the joins of these names, or print what that would do."""
    definitions = definitions_of(settings, file)
    joins = chosen_joins(definitions, file, names)
    if not is_confirmed:
        for join in joins:
            click.echo(
                f"{join.name}: all messages of its inputs are read, its states in the checkpoint location are made "
                f"again, and {join.target} gets the changes of rows that differ"
            )
        click.echo("Nothing was done. Stop the job, then run this again with --yes.")
        return
    with closing(open_catalogue(settings.registry)) as catalogue, command_errors("rebuild joins", JOIN_FAULTS):
        planner = JoinPlanner(definitions, catalogue, takes_new_columns=True)
        rebuild = Rebuild(definitions, catalogue, planner, click.echo)
        for join in joins:
            count = rebuild.rebuild(join)
            click.echo(f"{join.name}: done, {count:,} joined rows changed")
