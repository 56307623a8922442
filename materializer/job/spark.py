"""Starts the job in Spark and stops it: the Spark context, signals, and the end of spark-submit's JVM.

Spark starts the workers, runs the tasks of a batch and retries failed ones. It keeps no state: positions are the
consumer group's (docs/decisions/0004), and each batch is a separate Spark job.
"""

from __future__ import annotations

import os
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

from cdc_program.errors import CdcError, Code
from cdc_program.metrics import Collected
from cdc_program.operations import Operations
from cdc_program.registry import RegistryClient
from materializer.job.driver import BatchDriver
from materializer.job.lag_watch import LagWatch, UnreadKafka
from materializer.job.planner import Planner
from materializer.job.spark_conf import ARENAS, ARENAS_AT_MOST, is_submitted, session_options
from materializer.job.spark_workers import SparkWorkers, spark_errors, spark_failed
from materializer.job.status import JobStatus
from materializer.job.stopped import Failure, StoppedPartitions
from materializer.job.wiring import object_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from cdc_program.settings import MaterializerSettings, Settings
    from materializer.records import RawPartition

_logger = structlog.get_logger(__name__)
_RETRY_SECONDS = 0.5
_HEALTH_SECONDS = 600.0  # a batch may restore a large state
_LAST_BATCH_SECONDS = 60.0
_END_SECONDS = _LAST_BATCH_SECONDS + 30.0
_BEFORE_SPARK = 100  # a priority: Spark ends its context at 40, the highest of Hadoop's file systems is 10


def run_job(settings: Settings) -> None:
    """Materialize until SIGTERM or SIGINT. CdcError if the job as a whole cannot continue."""
    stop = threading.Event()
    own = settings.materializer
    stopped = StoppedPartitions()
    lags = LagWatch(lambda: UnreadKafka(settings.kafka, own.group_id), stopped.all)
    status = JobStatus(own.group_id, stopped, lags)
    with (
        _stop_signals(stop),
        RegistryClient(settings.registry) as registry,
        _operations(own, status) as operations,
    ):
        planner = Planner(settings, registry)
        planner.check_settings()
        object_store(own).check()
        failures = _check_positions(planner, settings)  # so that errors of the whole job show before Spark starts
        registry.check_reachable()
        with _spark_context(settings) as context, lags:
            driver = BatchDriver(settings, planner, stop, SparkWorkers(context), status)
            driver.stop_raw_partitions({each: Failure(error) for each, error in failures.items()})
            _logger.info("ready")
            with _stop_in_time(context, stop):
                driver.run_until_stopped(operations.beat)


def _operations(settings: MaterializerSettings, status: JobStatus) -> Operations:
    def retry(names: list[str]) -> dict[str, Any]:
        known = {str(each): each for each in status.stopped.all()}
        named = [known[name] for name in names if name in known] if names else None
        return {"retried": [str(each) for each in status.stopped.retry(named)]}

    address, port = settings.operations_address, settings.operations_port
    commands = {"/retry": retry}
    operations = Operations(address, port, status.as_json, commands=commands, health_seconds=_HEALTH_SECONDS)
    operations.registry.register(Collected(status.metrics))
    return operations


def _check_positions(planner: Planner, settings: Settings) -> dict[RawPartition, CdcError]:
    """Planner.check_positions, retried for a while: the Kafka cluster may have just started."""
    deadline = time.monotonic() + settings.kafka.connect_timeout_seconds
    while True:
        try:
            return planner.check_positions()
        except CdcError as error:
            if error.code is not Code.KAFKA_UNREACHABLE or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_SECONDS)


@contextmanager
def _stop_in_time(context: SparkContext, stop: threading.Event) -> Iterator[None]:
    """Cancels the last batch if it takes too long after a stop. Its transactions are aborted.

    A shutdown of spark-submit's JVM by YARN, Kubernetes or Ctrl-C stops the job too.
    """
    ended = threading.Event()

    def watch() -> None:
        while not stop.wait(_RETRY_SECONDS):
            if _jvm_is_shutting_down(context):
                _logger.info("spark jvm is shutting down")
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
        _logger.warning("batch canceled", problem=error.problem)
    finally:
        ended.set()
        stop.set()
        watcher.join()


@contextmanager
def _stop_signals(stop: threading.Event) -> Iterator[None]:
    """SIGTERM and SIGINT only set the event. An exception would break a call to the JVM that is under way."""

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
def _spark_context(settings: Settings) -> Iterator[SparkContext]:
    """A context whose own SIGINT handler is removed."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault(ARENAS, ARENAS_AT_MOST)  # of the JVM that this process starts
    handler = signal.getsignal(signal.SIGINT)
    conf = SparkConf()
    conf.setAll(list(session_options(settings.materializer).items()))
    try:
        context = SparkContext.getOrCreate(conf)
        application = context.applicationId  # read now: at the end Spark may be gone
        if is_submitted():
            _make_jvm_wait_for_driver(context)
        server: Any = context._accumulatorServer  # noqa: SLF001
        server.handle_error = lambda *_: None  # it would print a trace once the JVM is gone
    except Exception as error:
        raise spark_failed(error) from error
    signal.signal(signal.SIGINT, handler)
    try:
        _check_conf(context)
        yield context
    finally:
        _stop_context(context)
        shutil.rmtree(Path(os.environ.get("SPARK_HOME", "")) / "work" / application, ignore_errors=True)


def _jvm_is_shutting_down(context: SparkContext) -> bool:
    """False if the JVM is the driver's child: such a JVM ends by itself only when it fails."""
    try:
        return is_submitted() and bool(_shutdown_hooks(context).isShutdownInProgress())
    except Exception:  # noqa: BLE001 - the JVM is gone: the batch will fail and report it
        return False


def _make_jvm_wait_for_driver(context: SparkContext) -> None:
    """Add a shutdown hook to spark-submit's JVM that waits for this process before Spark's own hooks end Spark.

    The hook consists of Java objects only: for a callback into Python, Py4J would open a port without authentication.
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


def _stop_context(context: SparkContext) -> None:
    """Stop Spark, and ignore that its JVM may be gone: that was reported before, and PySpark would warn or raise."""
    with warnings.catch_warnings(), suppress(OSError):
        warnings.simplefilter("ignore", RuntimeWarning)
        context.stop()


def _check_conf(context: SparkContext) -> None:
    with spark_errors(context):
        speculation = context.getConf().get("spark.speculation", "false")
    if speculation == "true":
        raise CdcError(
            Code.SPARK_SETTING,
            "spark.speculation is on: two attempts of a task would fence each other again and again.",
            "Set spark.speculation=false for this job.",
        )
