"""Spark's executors as the job's workers, and the error for whatever Spark raises."""

from __future__ import annotations

import pickle
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.core.rdd import RDD
from pyspark.serializers import CPickleSerializer

from cdc_program.errors import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark import SparkContext

    from materializer.job.plan import Assignment
    from materializer.job.worker_loop import BatchTask, TaskResult


class SparkWorkers:
    """A worker is an executor. It has one core, and so one Python process, which lives as long as the executor.

    CdcError(SPARK_FAILED) if Spark gives up or has ended.
    """

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._is_local = str(context.master).partition("[")[0] == "local"

    def list_workers(self) -> list[str]:
        """Spark's names of its executors, `executor_<host>_<id>`. Local mode has none, so these names are invented."""
        with spark_errors(self._context):
            if self._is_local:
                return [f"local_{number}" for number in range(self._context.defaultParallelism)]
            return list(_executors(self._context)) or ["executor_to_come"]

    def run_task(self, task: BatchTask, assignments: Mapping[str, Assignment]) -> list[TaskResult]:
        """The results of all assignments, in any order."""
        with spark_errors(self._context):
            return _distribute(self._context, assignments).mapPartitions(task).collect()


def _executors(context: SparkContext) -> Iterator[str]:
    """Spark's names of the live executors, in the form of a task's preferred location."""
    jvm: Any = context._jvm  # noqa: SLF001 - Python has no other way to ask
    status = context._jsc.sc().env().blockManager().master().getMemoryStatus()  # noqa: SLF001
    for block_manager in jvm.scala.jdk.javaapi.CollectionConverters.asJavaCollection(status.keySet()).toArray():
        if not block_manager.isDriver():
            yield f"executor_{block_manager.host()}_{block_manager.executorId()}"


def _distribute(context: SparkContext, assignments: Mapping[str, Assignment]) -> RDD[Assignment]:
    """An RDD with one partition for each assignment, which Spark runs on its worker if that is free.

    PySpark has no SparkContext.makeRDD, so this calls Scala's.
    """
    jvm: Any = context._jvm  # noqa: SLF001
    to_seq = jvm.PythonUtils.toSeq
    pairs = [jvm.scala.Tuple2(bytearray(pickle.dumps(one)), to_seq([worker])) for worker, one in assignments.items()]
    any_class = jvm.scala.reflect.ClassTag.Any()
    made = context._jsc.sc().makeRDD(to_seq(pairs), any_class)  # noqa: SLF001
    return RDD(made.toJavaRDD(), context, CPickleSerializer())


@contextmanager
def spark_errors(context: SparkContext) -> Iterator[None]:
    """Turns whatever a call to Spark raises into CdcError(SPARK_FAILED)."""
    try:
        yield
    except Exception as error:
        raise (_spark_ended() if _has_ended(context) else spark_failed(error)) from error


def _has_ended(context: SparkContext) -> bool:
    try:
        return bool(context._jsc.sc().isStopped())  # noqa: SLF001
    except Exception:  # noqa: BLE001 - the JVM does not answer, for which Py4J has several errors
        return True


def _spark_ended() -> CdcError:
    return CdcError(
        Code.SPARK_FAILED,
        "Spark has ended while the driver was running: its JVM has died, or its cluster has ended the application.",
        "Start the materializer again: it continues at its committed offsets. Spark's own log has the cause.",
    )


def spark_failed(error: BaseException) -> CdcError:
    """CdcError(SPARK_FAILED) with the most specific line of Spark's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    raised = [line for line in lines if "Error" in line.partition(":")[0] or "Exception" in line.partition(":")[0]]
    python = [line for line in raised if not line.startswith(("org.apache.spark", "java.", "at ", "File "))]
    reason = (python or raised or lines or [type(error).__name__])[-1]
    return CdcError(
        Code.SPARK_FAILED,
        f"Spark has given up after its retries: {reason[:500]}",
        "Start the materializer again: it continues at its committed offsets. "
        "If it fails again, see the executors' logs.",
    )
