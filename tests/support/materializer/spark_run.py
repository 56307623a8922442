"""The materializer's whole run with the trivial fold: `python -m tests.support.materializer.spark_run run --set …`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_program.cli import Program
from materializer.job.spark import run_job
from tests.support.materializer.counting import counting

if TYPE_CHECKING:
    from cdc_program.settings import Settings

main = Program(
    "counting", tables=("kafka", "registry", "materializer", "log"), help="The materializer with a trivial fold."
)


@main.program_command("run")
def count(settings: Settings) -> None:
    run_job(settings, counting)


if __name__ == "__main__":
    main()
