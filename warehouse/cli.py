"""The console script cassandra-warehouse."""

from __future__ import annotations

from typing import Any

import click

from cdc_common.program.cli import Program
from stream_runtime.commands.job_cli import add_job_commands, operations_flags
from warehouse.settings import Settings

main = Program(
    "cassandra-warehouse",
    Settings,
    tables=("kafka", "registry", "warehouse", "log"),
    help="Loads topics into tables of a warehouse. It is a Spark job.",
)


@main.program_command(
    "run",
    is_service=True,
    flags={
        "--bootstrap-servers": "kafka.bootstrap_servers",
        "--group-id": "warehouse.group_id",
        "--target": "warehouse.target",
        "--spark-master": "warehouse.spark_master",
        **operations_flags("warehouse"),
    },
)
def run(settings: Settings) -> None:
    """Loads topics until it is stopped.

    Each topic has a table, which equals the topic at the offsets that are stored beside it: one transaction of the
    warehouse changes both.
    """
    from warehouse.job.run import run_warehouse  # noqa: PLC0415 - --help and config need no PySpark

    run_warehouse(settings)


@main.program_command(
    "write",
    is_service=True,
    flags={
        "--bootstrap-servers": "kafka.bootstrap_servers",
        "--group-id": "warehouse.group_id",
        "--location": "warehouse.location",
        "--spark-master": "warehouse.spark_master",
        **operations_flags("warehouse"),
    },
)
def write(settings: Settings) -> None:
    """Writes topics as objects for a warehouse that copies them.

    Each message is in exactly one object, and each object in one signal, which the job of `run` reads.
    """
    from warehouse.job.run import run_warehouse  # noqa: PLC0415 - --help and config need no PySpark

    run_warehouse(settings, writes=True)


@main.program_command("check")
def check(settings: Settings) -> None:
    """Checks the settings and the warehouse.

    It asks Kafka for the topics, connects to the warehouse, and makes its table of the positions. It reads no messages.
    """
    from warehouse.commands.check import print_check  # noqa: PLC0415 - --help and config need no PySpark

    print_check(settings)


@main.program_command("plan")
def plan(settings: Settings) -> None:
    """Shows which topics are loaded into which tables.

    It asks Kafka for the topics that match the settings, the registry for their newest schemas, and the warehouse for
    its state. It shows the SQL that the schemas need, and changes no table.
    """
    from warehouse.commands.plan import print_plan  # noqa: PLC0415 - --help and config need no PySpark

    print_plan(settings)


@main.program_command(
    "audit",
    params=[
        click.Option(["--repair", "repairs"], is_flag=True, help="Make the rows that differ those of the topic."),
        click.Argument(["topics"], metavar="[TOPIC]...", nargs=-1),
    ],
)
def audit(settings: Settings, topics: tuple[str, ...], *, repairs: bool) -> None:
    """Compares tables with their topics.

    It reads the position and the rows of a table in one snapshot, and the topic up to exactly this position, so both
    must be equal while loads go on. It prints the `_key` of rows that differ, and their columns, without values. The
    exit status is 4 if rows differ.
    """
    from warehouse.commands.audit import audit_tables  # noqa: PLC0415 - as above

    audit_tables(settings, topics, repairs=repairs)


@main.program_command("reload", params=[click.Argument(["topics"], metavar="TOPIC...", nargs=-1, required=True)])
def reload(settings: Settings, topics: tuple[str, ...]) -> None:
    """Loads tables again from the beginnings of their topics.

    Each topic is loaded into a table of its own, TABLE__new, while the job goes on. Once it has caught up, it takes the
    place of the table, with its rights, in one transaction.
    """
    from warehouse.commands.reload import reload_tables  # noqa: PLC0415 - --help and config need no Kafka

    reload_tables(settings, topics)


@main.program_command("pause", params=[click.Argument(["topics"], metavar="TOPIC...", nargs=-1, required=True)])
def pause(settings: Settings, topics: tuple[str, ...]) -> None:
    """Pauses the tables of topics until they are resumed.

    No job loads a paused table. The state of the table in the warehouse says so, and a load that has begun changes
    nothing.
    """
    from warehouse.commands.pause import pause_tables  # noqa: PLC0415 - --help and config need no database

    pause_tables(settings, topics, paused=True)


@main.program_command("resume", params=[click.Argument(["topics"], metavar="TOPIC...", nargs=-1, required=True)])
def resume(settings: Settings, topics: tuple[str, ...]) -> None:
    """Lets paused tables be loaded again.

    Jobs that run continue within 10 seconds, from where the tables are.
    """
    from warehouse.commands.pause import pause_tables  # noqa: PLC0415 - as above

    pause_tables(settings, topics, paused=False)


def _status_text(status: dict[str, Any]) -> str:
    from warehouse.job.status import text  # noqa: PLC0415 - --help and config need no PySpark

    return text(status)


add_job_commands(main, "warehouse", _status_text, partitions="TOPIC")
