"""The console script cassandra-joinery."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cdc_common.program.cli import Program
from joinery.settings import Settings
from stream_runtime.commands.job_cli import add_job_commands, operations_flags

main = Program(
    "cassandra-joinery",
    Settings,
    tables=("kafka", "registry", "joinery", "log"),
    help="Joins change topics without a time window. It is a Spark job.",
)

_FILE = click.Argument(["file"], metavar="[FILE]", type=click.Path(path_type=Path), required=False)


@main.program_command(
    "run",
    is_service=True,
    flags={
        "--bootstrap-servers": "kafka.bootstrap_servers",
        "--group-id": "joinery.group_id",
        "--spark-master": "joinery.spark_master",
        **operations_flags("joinery"),
    },
    params=[_FILE],
)
def run(settings: Settings, file: Path | None) -> None:
    """Runs the joins of FILE until it is stopped.

    Each reads the topics of its inputs and writes the topic of its target, exactly once. Its positions are the
    committed offsets of its consumer groups, where the next start continues.

    Example: cassandra-joinery run joins.toml
    """
    from joinery.job.run import run_joins  # noqa: PLC0415 - --help and config need no PySpark

    run_joins(settings, file or settings.joinery.file)


@main.program_command("check", params=[_FILE])
def check(settings: Settings, file: Path | None) -> None:
    """Checks the joins of FILE.

    It asks the registry whether each join fits the newest schemas of its inputs. It reads and writes no messages.

    Example: cassandra-joinery check joins.toml
    """
    from joinery.commands.planned import print_check  # noqa: PLC0415 - --help and config need no client of the registry

    print_check(settings, file or settings.joinery.file)


@main.program_command("plan", params=[_FILE])
def plan(settings: Settings, file: Path | None) -> None:
    """Shows the joined rows of each join of FILE.

    It also shows what the inputs need. It asks the registry for their newest schemas. It reads and writes no messages.

    Example: cassandra-joinery plan joins.toml
    """
    from joinery.commands.planned import print_plan  # noqa: PLC0415 - as above

    print_plan(settings, file or settings.joinery.file)


@main.program_command(
    "try",
    params=[
        click.Argument(["file"], metavar="FILE", type=click.Path(path_type=Path)),
        click.Argument(["case"], metavar="CASE", type=click.Path(path_type=Path)),
    ],
)
def try_case(_settings: Settings, file: Path, case: Path) -> None:
    """Shows what a join of FILE makes of the changes of CASE.

    CASE is a file with a few rows of each input. It needs no server: the rows are joined in memory. If CASE has the
    expected joined rows, others are an error.

    Example: cassandra-joinery try joins.toml case.toml
    """
    from joinery.commands.tried import print_trial  # noqa: PLC0415 - --help and config need no Avro

    print_trial(file, case)


@main.program_command(
    "audit",
    flags={"--bootstrap-servers": "kafka.bootstrap_servers", "--group-id": "joinery.group_id"},
    params=[
        _FILE,
        click.Option(["--join", "joins"], multiple=True, metavar="NAME", help="Only this join. Repeatable."),
    ],
)
def audit(settings: Settings, file: Path | None, joins: tuple[str, ...]) -> None:
    """Compares the targets of joins with their inputs.

    It reads all topics of the joins, and compares each target as it is at the job's position with the join of the
    inputs' rows before the same position. The job may go on. Rows are kept on disk, in the folder for temporary
    files. The exit status is 4 if joined rows differ.

    Example: cassandra-joinery audit joins.toml --join orders-of-users
    """
    from joinery.commands.audited import audit_joins  # noqa: PLC0415 - as above

    audit_joins(settings, file or settings.joinery.file, joins)


@main.program_command(
    "rebuild",
    flags={"--bootstrap-servers": "kafka.bootstrap_servers", "--group-id": "joinery.group_id"},
    params=[
        click.Argument(["file"], metavar="FILE", type=click.Path(path_type=Path)),
        click.Option(["--join", "joins"], multiple=True, metavar="NAME", required=True, help="The join. Repeatable."),
        click.Option(["--yes", "is_confirmed"], is_flag=True, help="Do it. Otherwise only say what would be done."),
    ],
)
def rebuild(settings: Settings, file: Path, joins: tuple[str, ...], *, is_confirmed: bool) -> None:
    """Makes the states of joins again from their inputs.

    Use it after a changed selection or filter, after the checkpoint location was lost, or after an audit has found
    differences. The job must not run. The target gets a change for each joined row that differs, and no other. After an
    interruption run it again.

    Example: cassandra-joinery rebuild joins.toml --join orders-of-users --yes
    """
    from joinery.commands.rebuilt import rebuild_joins  # noqa: PLC0415 - as above

    rebuild_joins(settings, file, joins, is_confirmed=is_confirmed)


def _status_text(status: dict[str, Any]) -> str:
    from joinery.job.status import text  # noqa: PLC0415 - as above

    return text(status)


add_job_commands(main, "joinery", _status_text, partitions="[JOIN/]TOPIC-PARTITION")
