"""The Spark job with the defect that CDC_MUTANT names.

A module of its own: what is pickled to the workers must not come from `__main__`.
"""

from __future__ import annotations

from cdc_common.program.cli import Program
from dev.verify.model.mutants import MutantPlanner
from materializer.job import run as spark
from materializer.settings import Settings

main = Program(
    "mutant", Settings, tables=("kafka", "registry", "materializer", "log"), help="A materializer with a defect."
)


@main.program_command("run", is_service=True)
def mutate(settings: Settings) -> None:
    vars(spark)["Planner"] = MutantPlanner
    spark.run_job(settings)


if __name__ == "__main__":
    main()
