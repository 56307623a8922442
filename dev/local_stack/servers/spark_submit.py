"""A job as Spark's users run it: by spark-submit, with an archive of Python packages for the executors."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from dev.local_stack.process.paths import project_root
from dev.local_stack.process.processes import ChildProcess
from dev.local_stack.servers.programs import (
    READY_LINE,
    SPARK_PYTHONS,
    SPARK_START_SECONDS,
    Program,
    spark_environment,
)
from dev.local_stack.servers.spark_cluster import spark_home

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dev.local_stack.servers.programs import Setting
    from dev.local_stack.servers.yarn_cluster import YarnCluster

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
        settings = ("--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1")
        return [*self._submit(), *settings, *self.options, *self.arguments]

    def _submit(self) -> list[str]:
        chosen = ("--master", self.master, "--archives", f"{self.archive}#{UNPACKED}")
        return [str(spark_home() / "bin" / "spark-submit"), *chosen]


class YarnClientJob(SubmittedJob):
    """spark-submit to YARN, with the driver in its own process."""

    def __init__(  # noqa: PLR0913 - settings by keyword
        self,
        cluster: YarnCluster,
        archive: Path,
        spark_jars: Path,
        *,
        folder: Path,
        settings: Mapping[str, Setting],
        name: str = "submitted",
    ) -> None:
        """spark_jars: as pack_spark_jars makes it."""
        attempts = ("spark.yarn.maxAppAttempts=10", "spark.yarn.am.attemptFailuresValidityInterval=1h")
        places = (f"spark.yarn.archive={spark_jars.as_uri()}", f"spark.yarn.stagingDir={cluster.staging.as_uri()}")
        options = _conf(*places, *attempts)
        super().__init__(
            "yarn", archive, folder=folder, settings=settings, options=("--num-executors", "2", *options), name=name
        )
        self.cluster = cluster
        configuration = str(cluster.client_configuration)
        self.environment |= {"HADOOP_CONF_DIR": configuration, "YARN_CONF_DIR": configuration}


class YarnClusterJob(YarnClientJob):
    """spark-submit to YARN, with the driver in the application master, whose log is in its container. All settings
    travel in a file.
    """

    def launch(self) -> ChildProcess:
        self._before = self._ready_lines()
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "cdc.toml").write_text(_as_toml({**self.settings, "log.format": "json"}))
        return ChildProcess(self.name, self.command(), log=self.log, env=self._client_environment(), cwd=self.folder)

    def is_ready(self) -> bool:
        return self._ready_lines() > self._before

    def command(self) -> list[str]:
        python = f"./{UNPACKED}/bin/python"
        pythons = _conf(*(f"spark.yarn.appMasterEnv.{name}={python}" for name in SPARK_PYTHONS))
        mode = ("--deploy-mode", "cluster", "--files", "cdc.toml", *pythons)
        return [*self._submit(), *mode, *self.options, *self.arguments, "--config", "cdc.toml"]

    def _client_environment(self) -> dict[str, str]:
        """Nothing of this project's."""
        left_out = ("CDC_", "PYTHON", "PYSPARK")
        return {name: value for name, value in self._environment().items() if not name.startswith(left_out)}

    def _ready_lines(self) -> int:
        return sum(self.cluster.output_of(name).count(READY_LINE) for name in ("stdout", "stderr"))


def _conf(*settings: str) -> tuple[str, ...]:
    return tuple(part for setting in settings for part in ("--conf", setting))


def _as_toml(settings: Mapping[str, Setting]) -> str:
    """A text of TOML is one of JSON. A text of digits is a number, as in the environment."""
    lines = []
    for name, value in settings.items():
        plain = value if isinstance(value, int | float) else str(value)
        is_number = isinstance(plain, str) and plain.isdigit()
        lines.append(f"{name} = {plain if is_number else json.dumps(plain)}")
    return "\n".join(lines) + "\n"
