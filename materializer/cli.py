"""The console script cassandra-materializer."""

from __future__ import annotations

from typing import Any

import click

from cdc_common.program.cli import Program, check_table
from cdc_common.program.compiled import warn_if_not_compiled
from materializer.settings import Settings
from stream_runtime.commands.job_cli import add_job_commands, operations_flags

main = Program(
    "cassandra-materializer",
    Settings,
    tables=("cassandra", "kafka", "registry", "materializer", "log"),
    secrets_of=("kafka", "registry"),
    help="Turns raw messages into row changes. It is a Spark job.",
)

_TABLE = click.Argument(["table"], metavar="KEYSPACE.TABLE", callback=check_table)
_ANY_TABLE = click.Argument(["table"], metavar="[KEYSPACE.TABLE]", required=False, callback=check_table)
_JSON_LINES = click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object per line.")


@main.program_command(
    "run",
    is_service=True,
    flags={
        "--bootstrap-servers": "kafka.bootstrap_servers",
        "--topic-prefix": "kafka.topic_prefix",
        "--group-id": "materializer.group_id",
        "--checkpoint-location": "materializer.checkpoint_location",
        "--state-directory": "materializer.state_directory",
        "--spark-master": "materializer.spark_master",
        **operations_flags("materializer"),
    },
)
def run(settings: Settings) -> None:
    """Runs the job until it is stopped.

    It reads the raw topics and publishes each change of each row exactly once. Its position is the consumer group's
    committed offset, where the next start continues.

    Example: cassandra-materializer run --config /etc/cdc.toml
    """
    from materializer.job.run import run_job  # noqa: PLC0415 - --help and config need no PySpark

    warn_if_not_compiled()
    run_job(settings)


def _status_text(status: dict[str, Any]) -> str:
    from materializer.job.status import text  # noqa: PLC0415 - as above

    return text(status)


add_job_commands(
    main,
    "materializer",
    _status_text,
    partitions="TOPIC-PARTITION",
    advice="Offsets and lag without it: `cassandra-materializer state ls`.",
)


@main.program_command(
    "check",
    secrets_of=("kafka",),
    params=[
        _TABLE,
        click.Option(
            ["--for", "consumer"],
            type=click.Choice(["jdbc", "flink", "clickhouse", "spark", "iceberg"]),
            required=True,
            help="The consumer.",
        ),
    ],
)
def check(settings: Settings, table: str, *, consumer: Any) -> None:  # noqa: ANN401 - one of the choices
    """Names the columns of a table that a consumer will not take.

    Each comes with the setting that helps. It reads the table's schema from the tables topic, and changes nothing.

    Exit status: 4 if the consumer does not take all columns.

    Example: cassandra-materializer check --for jdbc shop.orders
    """
    from materializer.commands.consumer_check import check_consumer  # noqa: PLC0415 - as above

    if check_consumer(settings, consumer, table, click.echo) is False:
        raise SystemExit(4)


@main.program_command(
    "rebuild",
    params=[
        _TABLE,
        click.Option(["--yes"], is_flag=True, help="Do it. Without this flag, only print what would be done."),
    ],
)
def rebuild(settings: Settings, table: str, *, yes: bool) -> None:
    """Discards a table's state to rebuild it.

    Stop the materializer first; publishers may continue. The command sends a `d` for each row that the change topic
    shows, deletes the state, and skips the messages in the raw topic. If it is interrupted, run it again. Afterwards,
    rebuild the keyspace in the CDC datacenter: this brings all rows again.

    Example: cassandra-materializer rebuild shop.orders --yes
    """
    from materializer.commands.rebuild.command import rebuild_table  # noqa: PLC0415

    rebuild_table(settings, table, is_confirmed=yes)


@main.program_command(
    "resend",
    params=[
        _TABLE,
        click.Option(["--yes"], is_flag=True, help="Do it. Without this flag, only print what would be done."),
    ],
)
def resend(settings: Settings, table: str, *, yes: bool) -> None:
    """Sends all rows of a table again to its change topic.

    Use it after the change topic was deleted and created again (CDC-093). The materializer may run. The job sends an
    `r` for each row, with the next row_sequence, before it folds anything else of the table.

    Example: cassandra-materializer resend shop.orders --yes
    """
    from materializer.commands.resend import resend_table  # noqa: PLC0415
    from materializer.errors import RAW_FAULTS  # noqa: PLC0415
    from stream_runtime.kafka import command_errors  # noqa: PLC0415

    with command_errors(f"resend {table}", RAW_FAULTS):
        resend_table(settings, table, is_confirmed=yes, say=click.echo)


@main.program_command(
    "audit",
    secrets_of=("cassandra", "kafka", "registry"),
    params=[
        _TABLE,
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
            help="Maximum rate of all tasks together (rows/s); 0 for no limit.",
        ),
        click.Option(
            ["--page-rows"], type=click.IntRange(min=1), default=500, show_default=True, help="Rows per page of SELECT."
        ),
        click.Option(
            ["--max-differences"],
            type=click.IntRange(min=1),
            default=10_000,
            show_default=True,
            help="Stop when this many rows differ.",
        ),
        click.Option(
            ["--wait-seconds"],
            type=click.FloatRange(min=0),
            default=900,
            show_default=True,
            help="Maximum time to wait at the end, after the log's delay, for the states to catch up (s).",
        ),
        click.Option(
            ["--log-delay-seconds"],
            type=click.FloatRange(min=0),
            help="Time after which the publisher can read a write in the log (s).  [default: 30; for "
            "Cassandra 3.11 twice filler.max_segment_age_seconds]",
        ),
        click.Option(
            ["--repair"],
            is_flag=True,
            help="Replace each Cassandra partition that differs by the data of its replicas.",
        ),
        click.Option(
            ["--repair-seconds"],
            type=click.FloatRange(min=1),
            default=1800,
            show_default=True,
            help="Maximum time of a repair (s). A repair that takes longer changes nothing.",
        ),
        click.Option(["--restart"], is_flag=True, help="Do not continue an audit that was stopped."),
        _JSON_LINES,
    ],
)
def audit(settings: Settings, table: str, *, as_json: bool, restart: bool, **options: Any) -> None:  # noqa: ANN401
    """Compares a table's state with Cassandra.

    A Spark job reads the committed states and, by token range, the same rows by SELECT. It prints each row that
    differs, with both sides and the likely cause. The materializer may keep running.

    Exit status: 0 if everything is equal, 1 if any row differs, 2 if something was not audited.

    Example: cassandra-materializer audit shop.orders
    """
    from materializer.commands.audit.command import audit_table  # noqa: PLC0415
    from materializer.commands.audit.plan import AuditOptions  # noqa: PLC0415

    most = options.pop("max_differences")
    raise SystemExit(
        audit_table(settings, table, AuditOptions(**options, most_candidates=most), as_json=as_json, restart=restart)
    )


dead_letters = click.Group("dead-letters", help="Shows and resolves raw messages that could not be read.")
main.add_command(dead_letters)


@main.program_command("ls", params=[_ANY_TABLE], group=dead_letters)
def dead_letters_ls(settings: Settings, table: str | None) -> None:
    """Lists dead-lettered messages.

    It prints id, place, time and reason of each unresolved message of a table, or of all tables. It prints no values.
    """
    from materializer.commands.dead_letters import list_dead_letters  # noqa: PLC0415

    list_dead_letters(settings, table)


@main.program_command("replay", params=[_ANY_TABLE], group=dead_letters)
def dead_letters_replay(settings: Settings, table: str | None) -> None:
    """Sends dead-lettered messages again.

    It sends each message that this version can read to its raw topic. Once the materializer has folded the message, it
    is resolved, and its Cassandra partition is complete again.
    """
    from materializer.commands.dead_letters import replay_dead_letters  # noqa: PLC0415

    replay_dead_letters(settings, table)


@main.program_command("discard", params=[click.Argument(["letter_id"], metavar="ID")], group=dead_letters)
def dead_letters_discard(settings: Settings, letter_id: str) -> None:
    """Discards a dead-lettered message.

    Do this only if the message did not come from a publisher, so that nothing is missing without it. It is then
    resolved.
    """
    from materializer.commands.dead_letters import discard_dead_letter  # noqa: PLC0415

    discard_dead_letter(settings, letter_id)


state = click.Group(
    "state", help="Shows and checks the stored states of the raw partitions. Only `reshard` changes them."
)
main.add_command(state)


@main.program_command(
    "ls",
    params=[
        _JSON_LINES,
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

    For each raw partition it prints version, offset, lag, and the number and size of changelogs and snapshots.
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

    It reads every file of the named raw partitions, or of all, and follows the changelogs to the committed version.

    Exit status: 4 if a file is missing or damaged.
    """
    from materializer.commands.state_verify import verify_states  # noqa: PLC0415

    verify_states(settings, raw_partitions)


@main.program_command(
    "show",
    params=[
        _TABLE,
        click.Argument(["key"], metavar="KEY...", nargs=-1, required=True),
        click.Option(["--values", "with_values"], is_flag=True, help="Show values, not only their lengths."),
    ],
    group=state,
)
def state_show(settings: Settings, table: str, key: tuple[str, ...], *, with_values: bool) -> None:
    """Prints the stored state of a Cassandra partition.

    It includes tombstones. KEY is the value of each partition key column. A value of any type can be written as 0x and
    its bytes.

    Example: cassandra-materializer state show shop.orders 42
    """
    from materializer.commands.state_show import show_cassandra_partition  # noqa: PLC0415

    show_cassandra_partition(settings, table, key, with_values=with_values)


@main.program_command(
    "reshard",
    params=[
        _TABLE,
        click.Option(["--dry-run"], is_flag=True, help="Only print what would be done."),
        click.Option(
            ["--spark", "in_spark"], is_flag=True, help="Use Spark's executors: a task for each raw partition."
        ),
    ],
    group=state,
)
def state_reshard(settings: Settings, table: str, *, dry_run: bool, in_spark: bool) -> None:
    """Redistributes a table's state.

    Use it after you added partitions to the table's raw topic. Stop the materializer first; publishers may continue.
    The command folds the messages that were placed by the old number of partitions, redistributes the state, and folds
    the remaining messages where their keys belong now. If it is interrupted, run it again.

    Example: cassandra-materializer state reshard shop.orders --dry-run
    """
    from materializer.commands.reshard.command import reshard_state  # noqa: PLC0415

    reshard_state(settings, table, dry_run=dry_run, in_spark=in_spark)
