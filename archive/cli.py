"""The console script cassandra-archive."""

from __future__ import annotations

from typing import Any

import click

from archive.settings import Settings
from cdc_common.program.cli import Program
from stream_runtime.commands.job_cli import add_job_commands, operations_flags

main = Program(
    "cassandra-archive",
    Settings,
    tables=("kafka", "registry", "archive", "log"),
    help="Keeps topics as Parquet files and tables of a data lake. It is a Spark job.",
)


@main.program_command(
    "run",
    is_service=True,
    flags={
        "--bootstrap-servers": "kafka.bootstrap_servers",
        "--group-id": "archive.group_id",
        "--location": "archive.location",
        "--spark-master": "archive.spark_master",
        **operations_flags("archive"),
    },
)
def run(settings: Settings) -> None:
    """Archives topics until it is stopped.

    Each message of the topics is in exactly one file. A file event in the topic of the file events names the files that
    hold a range of offsets, and is committed with these offsets in one transaction.
    """
    from archive.job.run import run_archive  # noqa: PLC0415 - --help and config need no PySpark

    run_archive(settings)


@main.program_command("check")
def check(settings: Settings) -> None:
    """Checks the settings and the location.

    It asks Kafka for the topics, stores and deletes a small file, and creates the topic of the file events. It reads no
    messages.
    """
    from archive.commands.check import print_check  # noqa: PLC0415 - as above

    print_check(settings)


@main.program_command("plan")
def plan(settings: Settings) -> None:
    """Shows which topics are archived into which tables.

    It asks Kafka for the topics that match the settings.
    """
    from archive.commands.plan import print_plan  # noqa: PLC0415 - as above

    print_plan(settings)


@main.program_command(
    "verify",
    params=[click.Option(["--rows", "read_rows"], is_flag=True, help="Read the offset of each row, too.")],
)
def verify(settings: Settings, *, read_rows: bool) -> None:
    """Proves that each message is in exactly one file.

    It reads all file events: the ranges of each partition must have neither gaps nor overlaps. Each file must be there,
    with the size and the number of rows of its event. The exit status is 4 if something does not fit.
    """
    from archive.commands.verify import verify_ledger  # noqa: PLC0415 - as above

    found = verify_ledger(settings, read_rows=read_rows)
    files = f"{found.files:,} files; {found.events:,} file events"
    click.echo(f"ok: {found.rows:,} rows of {found.topics:,} topics in {files}")


def _status_text(status: dict[str, Any]) -> str:
    from archive.job.status import text  # noqa: PLC0415 - as above

    return text(status)


add_job_commands(main, "archive", _status_text, partitions="TOPIC-PARTITION")
