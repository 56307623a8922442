"""The console script cassandra-materializer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cdc_program.cli import Program, reported_errors
from cdc_program.compiled import warn_if_not_compiled

if TYPE_CHECKING:
    from cdc_program.settings import Settings

main = Program(
    "cassandra-materializer",
    tables=("cassandra", "kafka", "registry", "materializer", "log"),
    help="Turns raw messages into row changes: a Spark job.",
)

_OPERATIONS = {
    "--operations-address": "materializer.operations_address",
    "--operations-port": "materializer.operations_port",
}
_WITHOUT_JOB = "Offsets and lag without it: `cassandra-materializer state ls`."


@main.program_command(
    "run",
    flags={
        "--bootstrap-servers": "kafka.bootstrap_servers",
        "--topic-prefix": "kafka.topic_prefix",
        "--group-id": "materializer.group_id",
        "--checkpoint-location": "materializer.checkpoint_location",
        "--state-directory": "materializer.state_directory",
        "--spark-master": "materializer.spark_master",
        **_OPERATIONS,
    },
)
def run(settings: Settings) -> None:
    """Runs the job until it is stopped.

    It reads the raw topics and publishes each change of each row exactly once. Its position is the consumer group's
    committed offset, where the next start continues.
    """
    from materializer.job.spark import run_job  # noqa: PLC0415 - --help and config need no PySpark

    warn_if_not_compiled()
    run_job(settings)


@main.program_command(
    "status",
    flags=_OPERATIONS,
    params=[click.Option(["--json", "as_json"], is_flag=True, help="Print the status as one JSON object.")],
)
def status(settings: Settings, *, as_json: bool) -> None:
    """Shows the status of the running job.

    For each stopped raw partition: code, since when, offset, lag, how long Kafka keeps what is unread, next try and
    fix. The exit status is 4 if a raw partition is stopped.
    """
    from materializer.commands.job_status import print_status  # noqa: PLC0415
    from materializer.job.status import text  # noqa: PLC0415

    print_status("materializer", settings.materializer, text, as_json=as_json, advice=_WITHOUT_JOB)


@main.program_command(
    "retry",
    flags=_OPERATIONS,
    params=[click.Argument(["raw_partitions"], metavar="[TOPIC-PARTITION]...", nargs=-1)],
)
def retry(settings: Settings, raw_partitions: tuple[str, ...]) -> None:
    """Tries stopped raw partitions now.

    The running job tries each stopped raw partition again by itself, after pauses of up to 5 minutes. This command
    makes the next try of these, or of all, happen now.
    """
    from materializer.commands.job_status import retry as retry_now  # noqa: PLC0415

    retry_now("materializer", settings.materializer, raw_partitions, _WITHOUT_JOB)


@main.program_command(
    "rebuild",
    params=[
        click.Argument(["table"], metavar="KEYSPACE.TABLE"),
        click.Option(["--yes"], is_flag=True, help="Do it. Without this flag, only print what would be done."),
    ],
)
def rebuild(settings: Settings, table: str, *, yes: bool) -> None:
    """Discards a table's state to rebuild it.

    Afterwards, rebuild the keyspace in the CDC datacenter, which brings all rows again. Stop the materializer first;
    publishers may continue. The command sends a `d` for each row that the change topic shows, deletes the state, and
    skips the messages in the raw topic. If it is interrupted, run it again.
    """
    from materializer.commands.rebuild.command import rebuild_table  # noqa: PLC0415

    rebuild_table(settings, table, is_confirmed=yes)


@main.command(
    "archive",
    params=[
        click.Argument(["target"], metavar="FILE.tar.gz", type=click.Path(path_type=Path, dir_okay=False)),
    ],
)
def archive(target: Path) -> None:
    """Packs this program for Spark's executors.

    The archive is a Python environment for spark-submit's --archives. The executors' machines need the same operating
    system, processor type and Python. PySpark is not included. docs/guides/spark.md shows how to use the archive.
    """
    from materializer.job.spark_archive import write_archive  # noqa: PLC0415

    with reported_errors():
        size = write_archive(target)
        click.echo(f"{target}: {size / 2**20:,.0f} MiB; spark-submit --archives {target}#environment", err=True)


@main.program_command(
    "audit",
    params=[
        click.Argument(["table"], metavar="KEYSPACE.TABLE"),
        click.Option(
            ["--consistency"],
            type=click.Choice(["LOCAL_ONE", "ONE", "LOCAL_QUORUM", "QUORUM", "ALL"]),
            default="LOCAL_QUORUM",
            show_default=True,
            help="Consistency level of SELECT. Above ONE, reads repair replicas that differ; ALL repairs every one.",
        ),
        click.Option(
            ["--slices"],
            type=click.IntRange(1, 4096),
            default=4,
            show_default=True,
            help="Parts of the token ring that are audited one after another. Each reads the states once. A stopped "
            "audit continues after the last whole slice.",
        ),
        click.Option(
            ["--parallel"],
            type=click.IntRange(min=1),
            help="Number of tasks that read Cassandra at a time.  [default: Spark's parallelism]",
        ),
        click.Option(
            ["--rows-per-second"],
            type=click.FloatRange(min=0),
            default=0,
            show_default=True,
            help="Limit of all tasks together; 0 for none.",
        ),
        click.Option(
            ["--page-rows"], type=click.IntRange(min=1), default=500, show_default=True, help="Rows of one page."
        ),
        click.Option(
            ["--max-differences"],
            type=click.IntRange(min=1),
            default=10_000,
            show_default=True,
            help="End early when so many rows differ.",
        ),
        click.Option(
            ["--wait-seconds"],
            type=click.FloatRange(min=0),
            default=900,
            show_default=True,
            help="How long to wait at the end, beyond the log's delay, until the states have caught up (s).",
        ),
        click.Option(
            ["--log-delay-seconds"],
            type=click.FloatRange(min=0),
            help="After this time a write is in the log where the publisher reads it (s).  [default: 30; for "
            "Cassandra 3.11 twice filler.max_segment_age_seconds]",
        ),
        click.Option(
            ["--repair"],
            is_flag=True,
            help="Replace each Cassandra partition in which something differs by what its replicas have.",
        ),
        click.Option(
            ["--repair-seconds"],
            type=click.FloatRange(min=1),
            default=1800,
            show_default=True,
            help="A repair that takes longer changes nothing (s).",
        ),
        click.Option(["--restart"], is_flag=True, help="Do not continue an audit that was stopped."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object per line."),
    ],
)
def audit(settings: Settings, table: str, *, as_json: bool, restart: bool, **options: Any) -> None:  # noqa: ANN401
    """Compares a table's state with Cassandra.

    A Spark job reads the committed states and, by token range, the same rows by SELECT. It prints each row that differs
    with both sides and the likely cause. The materializer runs on. The exit status is 0 if all is equal, 1 if any row
    differs, and 2 if something was not audited.
    """
    from materializer.commands.audit.command import audit_table  # noqa: PLC0415
    from materializer.commands.audit.plan import AuditOptions  # noqa: PLC0415

    most = options.pop("max_differences")
    raise SystemExit(
        audit_table(settings, table, AuditOptions(**options, most_candidates=most), as_json=as_json, restart=restart)
    )


dead_letters = click.Group("dead-letters", help="Raw messages that could not be read and were dead-lettered.")
main.add_command(dead_letters)
_TABLE = click.Argument(["table"], metavar="[KEYSPACE.TABLE]", required=False)


@main.program_command("ls", params=[_TABLE], group=dead_letters)
def dead_letters_ls(settings: Settings, table: str | None) -> None:
    """Lists dead-lettered messages.

    Prints id, place, time and reason of each unresolved message of a table, or of all tables, but no values.
    """
    from materializer.commands.dead_letters import list_dead_letters  # noqa: PLC0415

    list_dead_letters(settings, table)


@main.program_command("replay", params=[_TABLE], group=dead_letters)
def dead_letters_replay(settings: Settings, table: str | None) -> None:
    """Sends dead-lettered messages again.

    Sends each message that this version can read to its raw topic. Once the materializer has folded it, it is
    resolved, and its Cassandra partition is complete again.
    """
    from materializer.commands.dead_letters import replay_dead_letters  # noqa: PLC0415

    replay_dead_letters(settings, table)


@main.program_command("discard", params=[click.Argument(["letter_id"], metavar="ID")], group=dead_letters)
def dead_letters_discard(settings: Settings, letter_id: str) -> None:
    """Discards a dead-lettered message.

    Do this only if it did not come from a publisher, so that nothing is missing without it. It is then resolved.
    """
    from materializer.commands.dead_letters import discard_dead_letter  # noqa: PLC0415

    discard_dead_letter(settings, letter_id)


state = click.Group("state", help="The stored states of the raw partitions. Only `reshard` changes them.")
main.add_command(state)


@main.program_command(
    "ls",
    params=[
        click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object per line."),
        click.Option(
            ["--topics", "with_topics"],
            is_flag=True,
            help="Show the change topics too. This restores each state into a temporary folder.",
        ),
    ],
    group=state,
)
def state_ls(settings: Settings, *, as_json: bool, with_topics: bool) -> None:
    """Lists the stored states.

    For each raw partition: version, offset, lag, and the number and size of changelogs and snapshots.
    """
    from materializer.commands.state_list import list_states  # noqa: PLC0415

    list_states(settings, as_json=as_json, with_topics=with_topics)


@main.program_command(
    "verify",
    params=[click.Argument(["raw_partitions"], metavar="[TOPIC-PARTITION]...", nargs=-1)],
    group=state,
)
def state_verify(settings: Settings, raw_partitions: tuple[str, ...]) -> None:
    """Verifies the stored files.

    Reads every file of these raw partitions, or of all, and follows the changelogs to the committed version. The exit
    status is 4 if anything is missing or damaged.
    """
    from materializer.commands.state_verify import verify_states  # noqa: PLC0415

    verify_states(settings, raw_partitions)


@main.program_command(
    "show",
    params=[
        click.Argument(["table"], metavar="KEYSPACE.TABLE"),
        click.Argument(["key"], metavar="KEY...", nargs=-1, required=True),
        click.Option(["--values", "with_values"], is_flag=True, help="Show values, not only their lengths."),
    ],
    group=state,
)
def state_show(settings: Settings, table: str, key: tuple[str, ...], *, with_values: bool) -> None:
    """Prints a Cassandra partition.

    Shows what its state holds, including tombstones. KEY is the value of each partition key column. Values of any type
    can be written as 0x and their bytes.
    """
    from materializer.commands.state_show import show_cassandra_partition  # noqa: PLC0415

    show_cassandra_partition(settings, table, key, with_values=with_values)


@main.program_command(
    "reshard",
    params=[
        click.Argument(["table"], metavar="KEYSPACE.TABLE"),
        click.Option(["--dry-run"], is_flag=True, help="Only print what would be done."),
        click.Option(
            ["--spark", "in_spark"], is_flag=True, help="Use Spark's executors: a task for each raw partition."
        ),
    ],
    group=state,
)
def state_reshard(settings: Settings, table: str, *, dry_run: bool, in_spark: bool) -> None:
    """Redistributes a table's state.

    Use it after the table's raw topic got more partitions. Stop the materializer first; publishers may continue. The
    command folds the messages that were placed by the old number of partitions, redistributes the state, and folds the
    remaining messages where their keys belong now. If it is interrupted, run it again.
    """
    from materializer.commands.reshard.command import reshard_state  # noqa: PLC0415

    reshard_state(settings, table, dry_run=dry_run, in_spark=in_spark)
