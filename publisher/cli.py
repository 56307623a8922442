"""The console script cassandra-publisher."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cdc_program.cli import Program

if TYPE_CHECKING:
    from cdc_program.settings import Settings

main = Program(
    "cassandra-publisher",
    tables=("cassandra", "kafka", "registry", "node", "publisher", "filler", "log"),
    help="""
    Publishes a Cassandra node's commit log: every change of every table with cdc = true goes to Kafka, one message
    for each row. It runs beside the node, which is the first of cassandra.contact_points.
    """,
)


@main.program_command(
    "run",
    flags={
        "--cdc-raw-directory": "node.cdc_raw_directory",
        "--state-directory": "publisher.state_directory",
    },
)
def run(settings: Settings) -> None:
    """Publishes until it is stopped."""
    from publisher.app import run as publish  # noqa: PLC0415 - --help and config need neither driver nor Kafka

    publish(settings)


@main.program_command("check", flags={"--cdc-raw-directory": "node.cdc_raw_directory"})
def check(settings: Settings) -> None:
    """Looks at the node, its keyspaces, the disk and Kafka, changes nothing, and says what is ok, what is worth a word
    and what would lose changes; exit status 3 if anything would.
    """
    from publisher.loss_watch import check as look  # noqa: PLC0415 - --help and config need neither driver nor Kafka

    look(settings, click.echo)


@main.program_command(
    "status",
    flags={
        "--operations-address": "publisher.operations_address",
        "--operations-port": "publisher.operations_port",
    },
    params=[click.Option(["--json", "as_json"], is_flag=True, help="The numbers, as one JSON object.")],
)
def status(settings: Settings, *, as_json: bool) -> None:
    """Asks the publisher that runs on this machine what it does; the last line says whether it is safe to stop."""
    from cdc_program.status_client import fetch_status  # noqa: PLC0415 - --help and config need no metrics
    from publisher.status import Status, text  # noqa: PLC0415 - likewise

    click.echo(
        fetch_status("publisher", settings.publisher, lambda value: text(Status.from_json(value)), as_json=as_json)
    )


quarantine = click.Group("quarantine", help="Mutations that could not be decoded and were put aside.")
main.add_command(quarantine)


@main.program_command("ls", group=quarantine)
def list_quarantine(settings: Settings) -> None:
    """Lists them in the order of the log: place, time, size and reason; no values."""
    from publisher.quarantine_commands import show  # noqa: PLC0415 - --help and config need neither driver nor Kafka

    show(settings, click.echo)


@main.program_command("replay", group=quarantine)
def replay_quarantine(settings: Settings) -> None:
    """Sends those that can be decoded by now, as if they came from the log; the publisher may run meanwhile."""
    from publisher.quarantine_commands import replay  # noqa: PLC0415 - as above

    replay(settings, click.echo)


@main.program_command("discard", params=[click.Argument(["place"], metavar="FILE:POSITION")], group=quarantine)
def discard_quarantine(settings: Settings, place: str) -> None:
    """Gives one up: its changes stay missing until the rows are written or repaired."""
    from publisher.quarantine_commands import discard  # noqa: PLC0415 - as above

    discard(settings, place, click.echo)


@main.program_command(
    "observe",
    flags={"--cdc-raw-directory": "node.cdc_raw_directory"},
    params=[click.Option(["--seconds"], type=float, help="End after so long.  [default: only by Ctrl-C]")],
)
def observe(settings: Settings, seconds: float | None) -> None:
    """Reads the log as it is written, counts what would be sent of each table, and forecasts when cdc_raw is full.
    Sends, deletes and remembers nothing; needs no Kafka.
    """
    from publisher.observe import observe as watch  # noqa: PLC0415 - --help and config need no driver

    watch(settings, seconds, click.echo)
