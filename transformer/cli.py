"""The console script cassandra-transformer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cdc_program.cli import Program, reported_errors

if TYPE_CHECKING:
    from cdc_program.settings import Settings

main = Program(
    "cassandra-transformer",
    tables=("kafka", "registry", "transformer", "log"),
    help="Transforms change topics into topics with other schemas: a Spark job.",
)

_OPERATIONS = {
    "--operations-address": "transformer.operations_address",
    "--operations-port": "transformer.operations_port",
}


def _file() -> click.Argument:
    return click.Argument(["file"], metavar="[FILE]", type=click.Path(path_type=Path), required=False)


@main.program_command(
    "run",
    flags={
        "--bootstrap-servers": "kafka.bootstrap_servers",
        "--group-id": "transformer.group_id",
        "--spark-master": "transformer.spark_master",
        **_OPERATIONS,
    },
    params=[_file()],
)
def run(settings: Settings, file: Path | None) -> None:
    """Runs the transformers of FILE until it is stopped.

    Each reads the topics of its source and writes those of its target, exactly once. Its position is the committed
    offset of a consumer group of its own, where the next start continues.
    """
    from transformer.job.run import run_transformers  # noqa: PLC0415 - --help and config need no PySpark

    run_transformers(settings, file or settings.transformer.file)


@main.program_command("check", params=[_file()])
def check(settings: Settings, file: Path | None) -> None:
    """Checks FILE.

    Asks the registry whether each step fits the newest schema of its source. Reads and writes no message.
    """
    from transformer.job.run import check_transformers  # noqa: PLC0415 - as above

    check_transformers(settings, file or settings.transformer.file)
    click.echo("ok")


@main.command(
    "archive",
    params=[click.Argument(["target"], metavar="FILE.tar.gz", type=click.Path(path_type=Path, dir_okay=False))],
)
def archive(target: Path) -> None:
    """Packs this program for Spark's executors.

    As `cassandra-materializer archive`; docs/guides/spark.md shows how to use it.
    """
    from materializer.job.spark_archive import write_archive  # noqa: PLC0415 - as above

    with reported_errors():
        size = write_archive(target, "transformer")
        click.echo(f"{target}: {size / 2**20:,.0f} MiB; spark-submit --archives {target}#environment", err=True)


@main.program_command(
    "status",
    flags=_OPERATIONS,
    params=[click.Option(["--json", "as_json"], is_flag=True, help="Print the status as one JSON object.")],
)
def status(settings: Settings, *, as_json: bool) -> None:
    """Shows the status of the running job.

    For each stopped partition: code, since when, offset, lag, next try and fix. The exit status is 4 if a partition is
    stopped.
    """
    from materializer.commands.job_status import print_status  # noqa: PLC0415 - as above
    from transformer.job.status import text  # noqa: PLC0415 - as above

    print_status("transformer", settings.transformer, text, as_json=as_json)


@main.program_command(
    "retry",
    flags=_OPERATIONS,
    params=[click.Argument(["partitions"], metavar="[TRANSFORMER/TOPIC-PARTITION]...", nargs=-1)],
)
def retry(settings: Settings, partitions: tuple[str, ...]) -> None:
    """Tries stopped partitions now.

    The running job tries each stopped partition again by itself, after pauses of up to 5 minutes. This command makes
    the next try of these, or of all, happen now.
    """
    from materializer.commands.job_status import retry as retry_now  # noqa: PLC0415 - as above

    retry_now("transformer", settings.transformer, partitions)
