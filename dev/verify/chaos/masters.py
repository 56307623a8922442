"""The Sparks under which the runs over the whole path are made."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dev.local_stack.process.paths import project_root
from dev.local_stack.servers.spark_cluster import SparkCluster, executors, python_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dev.local_stack.servers.programs import Setting
    from dev.local_stack.servers.spark_cluster import SparkServer


class Master(NamedTuple):
    """A Spark master."""

    # The master URL. A standalone cluster's own URL takes its place.
    url: str
    # The options that spark-defaults.conf has.
    options: Mapping[str, str]
    # The number of workers of a standalone cluster; 0 for any other master.
    workers: int = 0


# One executor at first, and more while the workers are behind. The idle time is longer than a pause under load.
_DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.maxExecutors": "3",
    "spark.dynamicAllocation.executorIdleTimeout": "10s",
    "spark.executor.cores": "1",
}
# Its executors have only the code that a job brings along.
_STANDALONE = {"spark.ui.enabled": "false", "spark.executorEnv.PYTHONPATH": str(project_root())}
MASTERS: Mapping[str, Master] = {
    "two-executors": Master("local-cluster[2,1,1024]", {}),
    "two-cores": Master("local-cluster[2,2,1024]", {}),
    "dynamic": Master("local-cluster[3,1,1024]", _DYNAMIC),
    "local": Master("local[2,4]", {}),
    "standalone": Master("spark://", _STANDALONE, workers=2),
}


class RunningSpark:
    """The Spark of the jobs that are started while it runs: its options, and the servers of a standalone cluster."""

    def __init__(self, master: Master, folder: Path, cluster: SparkCluster | None) -> None:
        self._master = master
        self._defaults = folder / "spark-defaults.conf"
        self._cluster = cluster
        self.set_environment({})

    @property
    def settings(self) -> dict[str, Setting]:
        """The materializer's. The machines of a cluster have local states of their own."""
        if self._cluster is None:
            return {"materializer.spark_master": self._master.url}
        return {"materializer.spark_master": self._cluster.url, "materializer.state_directory": "state"}

    @property
    def workers(self) -> list[SparkServer]:
        """The servers that start executors; none where the job's own process does."""
        return [] if self._cluster is None else self._cluster.workers

    def executor_pids(self) -> list[int]:
        """The JVMs and Python processes of the executors that are not the job's own children."""
        return [pid for worker in self.workers for pid in (*executors(worker), *python_workers(worker))]

    def set_environment(self, environment: Mapping[str, str]) -> None:
        """Set the environment of the next job's executors."""
        given = {f"spark.executorEnv.{name}": value for name, value in environment.items()}
        lines = [f"{name} {value}\n" for name, value in {**self._master.options, **given}.items()]
        self._defaults.write_text("".join(lines))


@contextmanager
def running_spark(master: Master, report: Callable[[str], None]) -> Iterator[RunningSpark]:
    """Jobs that are started from here, in child processes too, have its options."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spark-conf-")))
        cluster = stack.enter_context(SparkCluster(master.workers, report=report)) if master.workers else None
        before = os.environ.get("SPARK_CONF_DIR")
        os.environ["SPARK_CONF_DIR"] = str(folder)
        try:
            yield RunningSpark(master, folder, cluster)
        finally:
            if before is None:
                del os.environ["SPARK_CONF_DIR"]
            else:
                os.environ["SPARK_CONF_DIR"] = before
