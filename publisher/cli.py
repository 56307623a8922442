"""The console script cassandra-publisher."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cdc_common.program.cli import Program, check_table
from publisher.settings import Settings

if TYPE_CHECKING:
    from typing import Unpack

    from publisher.commands.snapshot import Options
    from publisher.snapshot.state.records import Wanted

main = Program(
    "cassandra-publisher",
    Settings,
    tables=("cassandra", "kafka", "registry", "node", "publisher", "filler", "log"),
    help="""
    Reads a Cassandra node's commit log and sends every change of every table with cdc = true to Kafka, one message for
    each row. It runs on the node's machine. The node is the first of cassandra.contact_points.
    """,
)


@main.program_command(
    "run",
    is_service=True,
    flags={
        "--cdc-raw-directory": "node.cdc_raw_directory",
        "--state-directory": "publisher.state_directory",
    },
)
def run(settings: Settings) -> None:
    """Publishes changes until it is stopped.

    Example: cassandra-publisher run --config /etc/cdc.toml
    """
    from publisher.app import run_publisher  # noqa: PLC0415 - --help and config need neither driver nor Kafka

    run_publisher(settings)


@main.program_command("check", flags={"--cdc-raw-directory": "node.cdc_raw_directory"})
def check(settings: Settings) -> None:
    """Checks for settings that would lose changes.

    It looks at the node, its keyspaces, the disk and Kafka, and changes nothing.

    Exit status: 3 if changes would be lost.

    Example: cassandra-publisher check --config /etc/cdc.toml
    """
    from publisher.losses.loss_watch import print_findings  # noqa: PLC0415 - --help and config need neither driver nor Kafka

    print_findings(settings, click.echo)


@main.program_command(
    "status",
    flags={
        "--operations-address": "publisher.operations_address",
        "--operations-port": "publisher.operations_port",
    },
    params=[click.Option(["--json", "as_json"], is_flag=True, help="Print the status as one JSON object.")],
)
def status(settings: Settings, *, as_json: bool) -> None:
    """Prints the status of the publisher on this machine. The last line says whether it is safe to stop it."""
    from cdc_common.program.status_client import fetch_status  # noqa: PLC0415 - --help and config need no metrics
    from publisher.monitoring.status import Status, text  # noqa: PLC0415 - as above

    click.echo(
        fetch_status("publisher", settings.publisher, lambda value: text(Status.from_json(value)), as_json=as_json)
    )


@main.program_command(
    "snapshot",
    params=[
        click.Argument(["table"], metavar="KEYSPACE.TABLE", callback=check_table),
        click.Option(
            ["--id", "snapshot"],
            help="Take this node's part of the snapshot with this id, which was started on another node.",
        ),
        click.Option(
            ["--tokens"],
            metavar="FIRST:LAST",
            multiple=True,
            help="Only partitions with tokens of this range, or with this token; may be repeated.",
        ),
        click.Option(
            ["--primary-range"], is_flag=True, help="Only the ranges that list this node as their first replica."
        ),
        click.Option(["--detach"], is_flag=True, help="Do not wait for the end of the snapshot."),
        click.Option(["--pause", "wanted"], flag_value="pause", help="Pause the running snapshot."),
        click.Option(["--resume", "wanted"], flag_value="run", help="Continue the paused snapshot."),
        click.Option(["--cancel", "wanted"], flag_value="cancel", help="Give up the running snapshot."),
    ],
)
def snapshot_table(settings: Settings, table: str, wanted: Wanted | None, **options: Unpack[Options]) -> None:
    """Sends the rows that this node's SSTables hold of a table.

    The table has cdc = true; the rows may be older than that. The running publisher takes the snapshot, and continues
    it after a restart. The command only shows the progress: it may be stopped and run again.

    Exit status: 4 if the snapshot was given up.

    Example: cassandra-publisher snapshot shop.orders
    """
    from publisher.commands.snapshot import request_snapshot, want  # noqa: PLC0415 - as above

    if wanted is None:
        request_snapshot(settings, table, options, click.echo)
    else:
        want(settings, table, wanted, click.echo)


quarantine = click.Group("quarantine", help="Shows and resolves mutations that could not be decoded.")
main.add_command(quarantine)


@main.program_command("ls", group=quarantine)
def list_quarantine(settings: Settings) -> None:
    """Lists the quarantined mutations in the order of the log.

    It prints place, time, size and reason, and no values.
    """
    from publisher.commands.quarantine import list_mutations  # noqa: PLC0415 - --help and config need neither driver nor Kafka

    list_mutations(settings, click.echo)


@main.program_command(
    "replay",
    params=[
        click.Option(
            ["--schema", "schema_file"],
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="A copy of the schema.json of another publisher: use the tables that it knows.  [default: none]",
        )
    ],
    group=quarantine,
)
def replay_quarantine(settings: Settings, schema_file: Path | None) -> None:
    """Sends the mutations that can now be decoded.

    They are sent as if they came from the log. The publisher may keep running.

    Exit status: 4 if a mutation stays in quarantine.
    """
    from publisher.commands.quarantine import replay_mutations  # noqa: PLC0415 - as above

    replay_mutations(settings, schema_file, click.echo)


@main.program_command("discard", params=[click.Argument(["place"], metavar="FILE:POSITION")], group=quarantine)
def discard_quarantine(settings: Settings, place: str) -> None:
    """Discards a quarantined mutation. Its changes stay missing until the rows are written or repaired."""
    from publisher.commands.quarantine import discard_mutation  # noqa: PLC0415 - as above

    discard_mutation(settings, place, click.echo)


@main.program_command(
    "observe",
    flags={"--cdc-raw-directory": "node.cdc_raw_directory"},
    params=[click.Option(["--seconds"], type=float, help="Stop after this time (s).  [default: run until Ctrl-C]")],
)
def observe(settings: Settings, seconds: float | None) -> None:
    """Reads the log without sending anything.

    Every 10 s and at its end it prints the rows that would be sent of each table: those in cdc_raw in all, and the rate
    since the last report. It forecasts when cdc_raw will be full. It deletes and stores nothing, and needs no Kafka.

    Example: cassandra-publisher observe --seconds 60
    """
    from publisher.commands.observe import observe_log  # noqa: PLC0415 - --help and config need no driver

    observe_log(settings, seconds, click.echo)
