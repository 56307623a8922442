"""The console script cassandra-publisher."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cdc_program.cli import Program

if TYPE_CHECKING:
    from cdc_program.settings import Settings

main = Program(
    "cassandra-publisher",
    tables=("cassandra", "kafka", "registry", "publisher", "filler", "log"),
    help="""
    Publishes a Cassandra node's commit log: every change of every table with cdc = true goes to Kafka, one message
    for each row. It runs beside the node, which is the first of cassandra.contact_points.
    """,
)


@main.program_command(
    "run",
    flags={
        "--cdc-raw-directory": "publisher.cdc_raw_directory",
        "--state-directory": "publisher.state_directory",
    },
)
def run(settings: Settings) -> None:
    """Publishes until it is stopped."""
    from publisher.start import run as publish  # noqa: PLC0415 - --help and config need neither driver nor Kafka

    publish(settings)


@main.program_command("check", flags={"--cdc-raw-directory": "publisher.cdc_raw_directory"})
def check(settings: Settings) -> None:
    """Looks at the node, its keyspaces, the disk and Kafka, changes nothing, and says what is ok, what is worth a word
    and what would lose changes; exit status 3 if anything would.
    """
    from publisher.check import check as look  # noqa: PLC0415 - --help and config need neither driver nor Kafka

    look(settings, click.echo)
