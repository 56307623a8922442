"""The commands that each Spark job has: status, retry and pack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cdc_common.program.cli import reported_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdc_common.program.cli import Program
    from cdc_common.settings import Settings


def operations_flags(job: str) -> dict[str, str]:
    """The flags of a job's operations port, by its table of cdc.toml."""
    return {
        "--operations-address": f"{job}.operations_address",
        "--operations-port": f"{job}.operations_port",
    }


def add_job_commands(
    program: Program,
    job: str,
    text: Callable[[dict[str, Any]], str],
    *,
    partitions: str,
    advice: str = "",
) -> None:
    """job: its table of cdc.toml, which is the name of its extra, too. text: shows what /status answers. partitions:
    how help writes partitions. advice: what to do while the job does not
    run.
    """

    @program.program_command(
        "status",
        flags=operations_flags(job),
        params=[click.Option(["--json", "as_json"], is_flag=True, help="Print the status as one JSON object.")],
    )
    def status(settings: Settings, *, as_json: bool) -> None:
        """Shows the status of the running job.

        For each stopped partition: code, since when, offset, lag, how long Kafka keeps what is unread, next try and
        fix. The exit status is 4 if a partition is stopped.
        """
        from stream_runtime.commands.job_status import print_status  # noqa: PLC0415 - only it asks a job

        print_status(job, getattr(settings, job), text, as_json=as_json, advice=advice)

    @program.program_command(
        "retry",
        flags=operations_flags(job),
        params=[click.Argument(["partitions"], metavar=f"[{partitions}]...", nargs=-1)],
    )
    def retry(settings: Settings, partitions: tuple[str, ...]) -> None:
        """Tries stopped partitions now.

        The running job tries each stopped partition again by itself, after pauses of up to 5 minutes. This command
        makes the next try of these, or of all, happen now.
        """
        from stream_runtime.commands.job_status import retry as retry_now  # noqa: PLC0415 - as above

        retry_now(job, getattr(settings, job), partitions, advice)

    @program.command(
        "pack",
        params=[
            click.Argument(["target"], metavar="FILE.tar.gz", type=click.Path(path_type=Path, dir_okay=False)),
        ],
    )
    def pack(target: Path) -> None:
        """Packs this program for Spark's executors.

        The archive is a Python environment for spark-submit's --archives. The executors' machines need the same
        operating system, processor type and Python. PySpark is not included. docs/guides/spark.md shows how to use the
        archive.
        """
        from stream_runtime.query.spark_archive import write_archive  # noqa: PLC0415 - --help and config need no PySpark

        with reported_errors():
            size = write_archive(target, job)
            click.echo(f"{target}: {size / 2**20:,.0f} MiB; spark-submit --archives {target}#environment", err=True)
