"""Spark: it starts the workers and spreads the shares of a batch over them, and runs a failed task again.

Nothing of it remembers anything: positions are the group's (docs/decisions/0004), and each batch is a job of its own.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import sys
import threading
import time
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from pyspark import SparkConf, SparkContext
from pyspark.core.rdd import RDD
from pyspark.serializers import CPickleSerializer

from cdc_program.errors import CdcError, Code
from cdc_program.registry import RegistryClient
from materializer.job.driver import Batches
from materializer.job.planner import Planner
from materializer.job.spark_conf import is_submitted, session_options
from materializer.job.wiring import object_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

    from cdc_program.settings import Settings
    from materializer.job.plan import Share
    from materializer.job.worker_loop import BatchTask, TaskResult

_logger = structlog.get_logger(__name__)
_RETRY_SECONDS = 0.5
_LAST_BATCH_SECONDS = 60.0
_END_SECONDS = _LAST_BATCH_SECONDS + 30.0
_BEFORE_SPARK = 100  # a priority: Spark ends its context at 40, the highest of Hadoop's file systems is 10


def run(settings: Settings) -> None:
    """Materialize until SIGTERM or SIGINT; CdcError where it cannot go on."""
    stop = threading.Event()
    with _stop_signals(stop), RegistryClient(settings.registry) as registry:
        planner = Planner(settings, registry)
        planner.check_settings()
        object_store(settings.materializer).check()
        _check_positions(planner, settings)  # what stops it shows before Spark has started
        registry.check_reachable()
        with _context(settings) as context:
            batches = Batches(settings, planner, stop, SparkWorkers(context))
            _logger.info("ready")
            with _cut_short(context, stop):
                batches.run()


def _check_positions(planner: Planner, settings: Settings) -> None:
    """As Planner; waits a moment for a cluster that has just started."""
    deadline = time.monotonic() + settings.kafka.connect_timeout_seconds
    while True:
        try:
            planner.check_positions()
        except CdcError as error:
            if error.code is not Code.KAFKA_UNREACHABLE or time.monotonic() > deadline:
                raise
        else:
            return
        time.sleep(_RETRY_SECONDS)


class SparkWorkers:
    """A worker is an executor, which has one core and so one process of Python, which lives as long as it does.

    CdcError(SPARK_FAILED) where Spark gives up or has ended.
    """

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._is_local = str(context.master).partition("[")[0] == "local"

    def names(self) -> list[str]:
        """Where Spark may place a task, `executor_<host>_<id>`; in local mode it does not say where one runs."""
        with _calls(self._context):
            if self._is_local:
                return [f"local_{number}" for number in range(self._context.defaultParallelism)]
            return list(_executors(self._context)) or ["executor_to_come"]

    def run(self, task: BatchTask, shares: Mapping[str, Share]) -> list[TaskResult]:
        """Each share's results, in any order."""
        with _calls(self._context):
            return _placed(self._context, shares).mapPartitions(task).collect()


def _executors(context: SparkContext) -> Iterator[str]:
    """Spark's own names of the executors that are there, as locations of tasks."""
    jvm: Any = context._jvm  # noqa: SLF001 - Python has no other way to ask
    status = context._jsc.sc().env().blockManager().master().getMemoryStatus()  # noqa: SLF001
    for block_manager in jvm.scala.jdk.javaapi.CollectionConverters.asJavaCollection(status.keySet()).toArray():
        if not block_manager.isDriver():
            yield f"executor_{block_manager.host()}_{block_manager.executorId()}"


def _placed(context: SparkContext, shares: Mapping[str, Share]) -> RDD[Share]:
    """One partition for each share, which Spark runs at its place if that is free: SparkContext.makeRDD, which only
    Scala has.
    """
    jvm: Any = context._jvm  # noqa: SLF001
    to_seq = jvm.PythonUtils.toSeq
    pairs = [jvm.scala.Tuple2(bytearray(pickle.dumps(share)), to_seq([name])) for name, share in shares.items()]
    any_class = jvm.scala.reflect.ClassTag.Any()
    made = context._jsc.sc().makeRDD(to_seq(pairs), any_class)  # noqa: SLF001
    return RDD(made.toJavaRDD(), context, CPickleSerializer())


@contextmanager
def _calls(context: SparkContext) -> Iterator[None]:
    """CdcError(SPARK_FAILED) in place of whatever a call to Spark raises."""
    try:
        yield
    except Exception as error:
        raise (_spark_ended() if _has_ended(context) else spark_failed(error)) from error


def _has_ended(context: SparkContext) -> bool:
    try:
        return bool(context._jsc.sc().isStopped())  # noqa: SLF001
    except Exception:  # noqa: BLE001 - nobody answers, which Py4J has several errors for
        return True


def _spark_ended() -> CdcError:
    return CdcError(
        Code.SPARK_FAILED,
        "Spark has ended under the driver: its JVM has died, or its cluster has ended the application.",
        "Start the materializer again: it goes on where it stood. Spark's own log says why it has ended.",
    )


def spark_failed(error: BaseException) -> CdcError:
    """CdcError(SPARK_FAILED) with the line of Spark's message that says most."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    raised = [line for line in lines if "Error" in line.partition(":")[0] or "Exception" in line.partition(":")[0]]
    python = [line for line in raised if not line.startswith(("org.apache.spark", "java.", "at ", "File "))]
    reason = (python or raised or lines or [type(error).__name__])[-1]
    return CdcError(
        Code.SPARK_FAILED,
        f"Spark has given up after its retries: {reason[:500]}",
        "Start the materializer again: it goes on where it stood. If it ends so again, see the executors' logs.",
    )


@contextmanager
def _cut_short(context: SparkContext, stop: threading.Event) -> Iterator[None]:
    """A batch that takes too long to end when it is to stop is given up: its transactions are aborted.

    It is to stop, too, when spark-submit's JVM is told to end, by YARN, Kubernetes or Ctrl-C.
    """
    ended = threading.Event()

    def watch() -> None:
        while not stop.wait(_RETRY_SECONDS):
            if _jvm_is_to_end(context):
                _logger.info("stopping with Spark's JVM")
                stop.set()
        if not ended.wait(_LAST_BATCH_SECONDS):
            context.cancelAllJobs()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    except CdcError as error:
        if not stop.is_set() or error.code is not Code.SPARK_FAILED:
            raise
        _logger.warning("stopped within a batch", problem=error.problem)
    finally:
        ended.set()
        stop.set()
        watcher.join()


@contextmanager
def _stop_signals(stop: threading.Event) -> Iterator[None]:
    """SIGTERM and SIGINT only set the event: an exception in the midst of a call to the JVM would break that."""

    def request(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        for number in before:
            signal.signal(number, request)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _context(settings: Settings) -> Iterator[SparkContext]:
    """A context whose own SIGINT handler is put aside."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    handler = signal.getsignal(signal.SIGINT)
    conf = SparkConf()
    conf.setAll(list(session_options(settings.materializer).items()))
    try:
        context = SparkContext.getOrCreate(conf)
        application = context.applicationId  # in the end Spark may be gone
        if is_submitted():
            _let_driver_end_first(context)
        server: Any = context._accumulatorServer  # noqa: SLF001
        server.handle_error = lambda *_: None  # it would print a trace when the JVM is gone
    except Exception as error:
        raise spark_failed(error) from error
    signal.signal(signal.SIGINT, handler)
    try:
        _refuse(context)
        yield context
    finally:
        _stop(context)
        shutil.rmtree(Path(os.environ.get("SPARK_HOME", "")) / "work" / application, ignore_errors=True)


def _jvm_is_to_end(context: SparkContext) -> bool:
    """False where it is the driver's child, which may end by itself only in failure."""
    try:
        return is_submitted() and bool(_shutdown_hooks(context).isShutdownInProgress())
    except Exception:  # noqa: BLE001 - it is gone: the batch will fail, and say so
        return False


def _let_driver_end_first(context: SparkContext) -> None:
    """spark-submit's JVM, told to end, waits for this process before Spark's own hooks end Spark.

    The hook is made of Java alone: for a callback Py4J opens a port that asks for no secret.
    """
    java: Any = context._jvm.java  # type: ignore[union-attr]  # noqa: SLF001
    invoke, class_of = java.lang.invoke, java.lang.Class.forName
    ended = java.lang.ProcessHandle.of(os.getpid()).get().onExit()
    get = invoke.MethodType.methodType(class_of("java.lang.Object"))
    wait = invoke.MethodHandles.publicLookup().bind(ended, "get", get)
    hook = invoke.MethodHandleProxies.asInterfaceInstance(class_of("java.lang.Runnable"), wait)
    seconds = java.util.concurrent.TimeUnit.SECONDS
    _shutdown_hooks(context).addShutdownHook(hook, _BEFORE_SPARK, int(_END_SECONDS), seconds)


def _shutdown_hooks(context: SparkContext) -> Any:  # noqa: ANN401 - Java's
    jvm: Any = context._jvm  # noqa: SLF001
    return jvm.org.apache.hadoop.util.ShutdownHookManager.get()


def _stop(context: SparkContext) -> None:
    """Also where its JVM is gone, which is told by then: PySpark would warn of it, or raise what its socket raises."""
    with warnings.catch_warnings(), suppress(OSError):
        warnings.simplefilter("ignore", RuntimeWarning)
        context.stop()


def _refuse(context: SparkContext) -> None:
    with _calls(context):
        speculation = context.getConf().get("spark.speculation", "false")
    if speculation == "true":
        raise CdcError(
            Code.SPARK_SETTING,
            "spark.speculation is on: two attempts of a task would fence each other for ever.",
            "Set spark.speculation=false for this job.",
        )
