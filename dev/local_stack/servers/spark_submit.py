"""A job as Spark's users run it: by spark-submit, with an archive of Python packages for the executors."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dev.local_stack.process.paths import project_root
from dev.local_stack.servers.programs import SPARK_START_SECONDS, Program, spark_environment
from dev.local_stack.servers.spark_cluster import spark_home

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dev.local_stack.servers.programs import Setting

UNPACKED = "environment"
MATERIALIZER = "deploy/spark/submit.py"
TRANSFORMER = "deploy/spark/submit_transformer.py"


class SubmittedJob(Program):
    """spark-submit with the driver in its own process (deploy mode client); `log` has the driver's and Spark's words.

    `main`: the main file. `options`: more options of spark-submit.
    """

    def __init__(  # noqa: PLR0913 - settings by keyword
        self,
        master: str,
        archive: Path,
        *,
        folder: Path,
        settings: Mapping[str, Setting],
        options: tuple[str, ...] = (),
        main: str = MATERIALIZER,
        name: str = "submitted",
    ) -> None:
        environment = {
            **spark_environment(folder),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_PYTHON": f"./{UNPACKED}/bin/python",
            "PYTHONPATH": "",  # executors of a local cluster would get the checkout by it
        }
        super().__init__(
            name,
            (str(project_root() / main), "run"),
            folder=folder,
            settings=settings,
            environment=environment,
            start_seconds=SPARK_START_SECONDS,
        )
        self.master = master
        self.archive = archive
        self.options = options

    def command(self) -> list[str]:
        chosen = ("--master", self.master, "--archives", f"{self.archive}#{UNPACKED}")
        settings = ("--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1")
        return [str(spark_home() / "bin" / "spark-submit"), *chosen, *settings, *self.options, *self.arguments]
