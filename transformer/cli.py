"""The console script cassandra-transformer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cdc_common.program.cli import Program
from stream_runtime.commands.job_cli import add_job_commands, operations_flags
from transformer.settings import Settings

main = Program(
    "cassandra-transformer",
    Settings,
    tables=("kafka", "registry", "transformer", "log"),
    help="Transforms change topics into topics with other schemas. It is a Spark job.",
)

_FILE = click.Argument(["file"], metavar="[FILE]", type=click.Path(path_type=Path), required=False)


@main.program_command(
    "run",
    is_service=True,
    flags={
        "--bootstrap-servers": "kafka.bootstrap_servers",
        "--group-id": "transformer.group_id",
        "--spark-master": "transformer.spark_master",
        **operations_flags("transformer"),
    },
    params=[_FILE],
)
def run(settings: Settings, file: Path | None) -> None:
    """Runs the transformers of FILE until it is stopped.

    Each reads the topics of its source and writes those of its target, exactly once. Its position is the committed
    offset of its own consumer group, where the next start continues.

    Example: cassandra-transformer run transformers.toml
    """
    from transformer.job.run import run_transformers  # noqa: PLC0415 - --help and config need no PySpark

    run_transformers(settings, file or settings.transformer.file)


@main.program_command("check", params=[_FILE])
def check(settings: Settings, file: Path | None) -> None:
    """Checks the transformers of FILE.

    It asks the registry whether each step fits the newest schema of its source. It reads and writes no messages.

    Example: cassandra-transformer check transformers.toml
    """
    from transformer.job.run import check_transformers  # noqa: PLC0415 - as above

    unchecked = check_transformers(settings, file or settings.transformer.file)
    click.echo(f"ok, except for those without a source: {', '.join(unchecked)}" if unchecked else "ok")


def _status_text(status: dict[str, Any]) -> str:
    from transformer.job.status import text  # noqa: PLC0415 - as above

    return text(status)


add_job_commands(
    main,
    "transformer",
    _status_text,
    partitions="TRANSFORMER/TOPIC-PARTITION",
)
