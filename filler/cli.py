"""The console script cassandra-filler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cdc_program.cli import Program

if TYPE_CHECKING:
    from cdc_program.settings import Settings

main = Program(
    "cassandra-filler",
    tables=("cassandra", "filler", "log"),
    help="Bounds how long a write waits in the commit log of a quiet cluster: writes a little of its own.",
)


@main.program_command(
    "run",
    flags={
        "--max-segment-age-seconds": "filler.max_segment_age_seconds",
        "--commitlog-directory": "filler.commitlog_directory",
        "--cdc-raw-directory": "filler.cdc_raw_directory",
    },
)
def run(settings: Settings) -> None:
    """Writes until it is stopped."""
    from filler.run import run as fill  # noqa: PLC0415 - --help and config need no driver

    fill(settings)


@main.program_command(
    "status",
    flags={
        "--operations-address": "filler.operations_address",
        "--operations-port": "filler.operations_port",
    },
    params=[click.Option(["--json", "as_json"], is_flag=True, help="The numbers, as one JSON object.")],
)
def status(settings: Settings, *, as_json: bool) -> None:
    """Asks the filler that runs on this machine what it does."""
    from cdc_program.ask import ask  # noqa: PLC0415 - --help and config need no metrics
    from filler.status import Status, text  # noqa: PLC0415 - likewise

    click.echo(ask("filler", settings.filler, lambda value: text(Status.from_json(value)), as_json=as_json))
