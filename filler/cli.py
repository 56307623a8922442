"""The console script cassandra-filler."""

from __future__ import annotations

import click

from cdc_common.program.cli import Program
from filler.settings import Settings

main = Program(
    "cassandra-filler",
    Settings,
    tables=("cassandra", "node", "filler", "log"),
    help="""
    Writes padding, so that commit log segments of a cluster with few writes fill up, and reach CDC, within a configured
    time.
    """,
)


@main.program_command(
    "run",
    is_service=True,
    flags={
        "--max-segment-age-seconds": "filler.max_segment_age_seconds",
        "--commitlog-directory": "node.commitlog_directory",
        "--cdc-raw-directory": "node.cdc_raw_directory",
    },
)
def run(settings: Settings) -> None:
    """Writes padding until it is stopped.

    Example: cassandra-filler run --config /etc/cdc.toml
    """
    from filler.app import run_filler  # noqa: PLC0415 - --help and config need no driver

    run_filler(settings)


@main.program_command(
    "status",
    flags={
        "--operations-address": "filler.operations_address",
        "--operations-port": "filler.operations_port",
    },
    params=[click.Option(["--json", "as_json"], is_flag=True, help="Print the status as one JSON object.")],
)
def status(settings: Settings, *, as_json: bool) -> None:
    """Prints the status of the filler on this machine."""
    from cdc_common.program.status_client import fetch_status  # noqa: PLC0415 - --help and config need no metrics
    from filler.status import Status, status_text  # noqa: PLC0415 - as above

    click.echo(
        fetch_status("filler", settings.filler, lambda value: status_text(Status.from_json(value)), as_json=as_json)
    )
