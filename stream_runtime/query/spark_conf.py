"""The options of the Spark session that a job sets."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream_runtime.settings import JobSettings

_JAVA = 17
# Spark does little here: one core, the fast compiler alone, a small young generation, which is used up before it is
# collected, a heap that grows by little, and few of Netty's buffers.
_JVM = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmn16m -Xms48m -XX:MinHeapFreeRatio=15 -XX:MaxHeapFreeRatio=30 "
    "-Dio.netty.allocator.numDirectArenas=1"
)
# glibc gives each thread a heap of its own, and none of them back. Two are enough: 80 MB less for two workers.
ARENAS, ARENAS_AT_MOST = "MALLOC_ARENA_MAX", "2"
_PYTHON_MEMORY = "spark.executor.pyspark.memory"
_NEW_PROCESSES = "each task would start in a new process and open its states and producers again"
_REFUSED = (
    ("spark.speculation", "true", "false", "two attempts of a task would fence each other again and again"),
    ("spark.python.worker.reuse", "false", "true", _NEW_PROCESSES),
    ("spark.python.use.daemon", "false", "true", _NEW_PROCESSES),
)
# Spark's own metrics on its UI's port.
PROMETHEUS = {
    "spark.metrics.conf.*.sink.prometheusServlet.class": "org.apache.spark.metrics.sink.PrometheusServlet",
    "spark.metrics.conf.*.sink.prometheusServlet.path": "/metrics/prometheus",
}
# What Spark's UI remembers: each micro-batch is a job.
_KEPT = {
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "20",
}


def session_options(settings: JobSettings) -> dict[str, str]:
    """Return the options of the Spark session. CdcError if Java is missing. Under spark-submit, only what needs no JVM
    of its own is set.
    """
    options = {
        "spark.app.name": settings.group_id,
        "spark.api.mode": "classic",
        "spark.ui.showConsoleProgress": "false",
        **PROMETHEUS,
        f"spark.executorEnv.{ARENAS}": os.environ.get(ARENAS, ARENAS_AT_MOST),
    }
    if "CDC_NATIVE" in os.environ:  # of the workers too: they fold
        options["spark.executorEnv.CDC_NATIVE"] = os.environ["CDC_NATIVE"]
    if is_submitted():
        return options
    check_java()
    log_option = f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}"
    java_options = f"{log_option} {_JVM}"
    options |= {
        "spark.master": settings.spark_master,
        **_KEPT,
        "spark.driver.extraJavaOptions": java_options,
        "spark.executor.extraJavaOptions": java_options,
    }
    if settings.spark_master.startswith("local"):
        options |= {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
    return options


def check_conf(conf: Mapping[str, str]) -> None:
    """Raise CdcError(SPARK_SETTING) for an option of Spark with which the job would work badly or not at all."""
    for option, value, right, reason in _REFUSED:
        if conf.get(option, right) == value:
            raise CdcError(Code.SPARK_SETTING, f"{option} is {value}: {reason}.", f"Set {option}={right} for this job.")
    if _PYTHON_MEMORY in conf:
        raise CdcError(
            Code.SPARK_SETTING,
            f"{_PYTHON_MEMORY} is set: it limits the address space of a worker. Threads and RocksDB reserve "
            "far more of it than they use.",
            f"Unset {_PYTHON_MEMORY}, and give the executors spark.executor.memoryOverhead.",
        )


def is_submitted() -> bool:
    """Whether spark-submit has started this process. If not, the process starts Spark's JVM itself."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def check_java() -> None:
    """Raise CdcError unless the Java of JAVA_HOME or the PATH, which Spark will start, is 17 or later."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    fix = f"Install Java {_JAVA}, or point JAVA_HOME at one."
    if java is None:
        raise CdcError(Code.SPARK_SETTING, "Spark needs Java, and there is none on the PATH.", fix)
    try:
        shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=30).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise CdcError(Code.SPARK_SETTING, f"Spark needs Java, but {java} does not run: {error}.", fix) from error
    found = re.search(r'version "(\d+)', shown)
    if found is None or int(found[1]) < _JAVA:
        raise CdcError(Code.SPARK_SETTING, f"Spark needs Java {_JAVA}, but {java} is {found and found[1]}.", fix)
