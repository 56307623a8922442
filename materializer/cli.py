"""The console script cassandra-materializer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cdc_program.cli import Program, reported_errors
from cdc_program.compiled import warn_if_not

if TYPE_CHECKING:
    from cdc_program.settings import Settings

main = Program(
    "cassandra-materializer",
    tables=("kafka", "registry", "materializer", "log"),
    help="Makes the changes of rows out of raw messages: a Spark job.",
)


@main.program_command(
    "run",
    flags={
        "--bootstrap-servers": "kafka.bootstrap_servers",
        "--topic-prefix": "kafka.topic_prefix",
        "--group-id": "materializer.group_id",
        "--checkpoint-location": "materializer.checkpoint_location",
        "--state-directory": "materializer.state_directory",
        "--spark-master": "materializer.spark_master",
    },
)
def run(settings: Settings) -> None:
    """Follows the raw topics and publishes each change of each row once, until it is stopped.

    Where it stands is the consumer group's committed offset; started again, it goes on there.
    """
    from materializer.job.spark import run as materialize  # noqa: PLC0415 - --help and config need no PySpark

    warn_if_not()
    materialize(settings)


@main.program_command(
    "rebuild",
    params=[
        click.Argument(["table"], metavar="KEYSPACE.TABLE"),
        click.Option(["--yes"], is_flag=True, help="Do it; without it, only say what would be done."),
    ],
)
def advise_rebuild(settings: Settings, table: str, *, yes: bool) -> None:
    """Makes a table start over, its state lost or not: then rebuild its keyspace in the CDC datacenter.

    The materializer must be stopped; publishers may go on. Each row that the change topic shows ends with a `d`, the
    state is deleted, and what lies in the raw topic is passed over. If it is interrupted, run it again.
    """
    from materializer.commands.rebuild_command import rebuild  # noqa: PLC0415

    rebuild(settings, table, is_meant=yes)


@main.command(
    "archive",
    params=[
        click.Argument(["target"], metavar="FILE.tar.gz", type=click.Path(path_type=Path, dir_okay=False)),
    ],
)
def make_archive(target: Path) -> None:
    """Writes a Python environment with this program for Spark's executors, for spark-submit's --archives.

    Their machines need this system, processor and Python; PySpark is not in it. docs/spark.md shows how it is used.
    """
    from materializer.job.spark_archive import write_archive  # noqa: PLC0415

    with reported_errors():
        size = write_archive(target)
        click.echo(f"{target}: {size / 2**20:,.0f} MiB; spark-submit --archives {target}#environment", err=True)


dead_letters = click.Group("dead-letters", help="Raw messages that cannot be read and were put aside.")
main.add_command(dead_letters)
_TABLE = click.Argument(["table"], metavar="[KEYSPACE.TABLE]", required=False)


@main.program_command("ls", params=[_TABLE], group=dead_letters)
def list_dead_letters(settings: Settings, table: str | None) -> None:
    """Lists the dead letters of a table, or of all, that are not settled: id, place, time and reason; no values."""
    from materializer.commands.dead_letters import show  # noqa: PLC0415

    show(settings, table)


@main.program_command("replay", params=[_TABLE], group=dead_letters)
def replay_dead_letters(settings: Settings, table: str | None) -> None:
    """Sends to its raw topic again what this build can read.

    Once the materializer has folded it, it is settled, and its partition is exact again.
    """
    from materializer.commands.dead_letters import replay  # noqa: PLC0415

    replay(settings, table)


@main.program_command("discard", params=[click.Argument(["letter_id"], metavar="ID")], group=dead_letters)
def discard_dead_letter(settings: Settings, letter_id: str) -> None:
    """Settles a dead letter that no publisher has sent: nothing is missing without it."""
    from materializer.commands.dead_letters import discard  # noqa: PLC0415

    discard(settings, letter_id)


state = click.Group("state", help="The stored states of the raw partitions; only `reshard` changes them.")
main.add_command(state)


@main.program_command(
    "ls",
    params=[click.Option(["--json", "as_json"], is_flag=True, help="One JSON object a line.")],
    group=state,
)
def list_stored(settings: Settings, *, as_json: bool) -> None:
    """Lists the raw partitions: state's version, offset, lag, changelogs and snapshots with their sizes."""
    from materializer.commands.state import ls  # noqa: PLC0415

    ls(settings, as_json=as_json)


@main.program_command(
    "verify",
    params=[click.Argument(["partitions"], metavar="[TOPIC-PARTITION]...", nargs=-1)],
    group=state,
)
def verify_stored(settings: Settings, partitions: tuple[str, ...]) -> None:
    """Reads every file of these raw partitions, or of all, and follows the chain to the committed version.

    Exit status 4 if anything is missing or damaged.
    """
    from materializer.commands.state import verify_all  # noqa: PLC0415

    verify_all(settings, partitions)


@main.program_command(
    "show",
    params=[
        click.Argument(["table"], metavar="KEYSPACE.TABLE"),
        click.Argument(["key"], metavar="KEY...", nargs=-1, required=True),
        click.Option(["--values", "with_values"], is_flag=True, help="Show values; without it, only their lengths."),
    ],
    group=state,
)
def show_stored(settings: Settings, table: str, key: tuple[str, ...], *, with_values: bool) -> None:
    """Prints a Cassandra partition as the state holds it, tombstones included.

    KEY is the value of each partition key column; of any type as 0x and its bytes.
    """
    from materializer.commands.state import show  # noqa: PLC0415

    show(settings, table, key, with_values=with_values)


@main.program_command(
    "reshard",
    params=[
        click.Argument(["table"], metavar="KEYSPACE.TABLE"),
        click.Option(["--dry-run"], is_flag=True, help="Say what would be done, and do nothing."),
    ],
    group=state,
)
def reshard_stored(settings: Settings, table: str, *, dry_run: bool) -> None:
    """Deals the state out anew after the table's raw topic got more partitions.

    The materializer must be stopped; publishers may go on. It folds what was sent by the old number of partitions, and
    each message where its key belongs now. If it is interrupted, run it again.
    """
    from materializer.commands.state import deal_out  # noqa: PLC0415

    deal_out(settings, table, dry_run=dry_run)
