"""The materializer's whole run with the trivial fold: `python -m tests.support.materializer.spark_run run --set …`."""

from __future__ import annotations

from cdc_common.program.cli import Program
from materializer.job import run as spark
from materializer.settings import Settings
from tests.support.materializer.counting import CountingPlanner

main = Program(
    "counting",
    Settings,
    tables=("kafka", "registry", "materializer", "log"),
    help="The materializer with a trivial fold.",
)


@main.program_command("run", is_service=True)
def count(settings: Settings) -> None:
    vars(spark)["Planner"] = CountingPlanner
    spark.run_job(settings)


if __name__ == "__main__":
    main()
