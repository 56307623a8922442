"""The Spark session of the job: a new one, or the one that this process has, which is left running."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager, nullcontext, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.query.planning_python import planning_python
from stream_runtime.query.spark_conf import ARENAS, ARENAS_AT_MOST, check_conf, is_submitted, session_options
from stream_runtime.query.spark_errors import spark_ended, spark_errors, spark_failed
from stream_runtime.query.spark_home import work_folder, writable_home
from stream_runtime.query.spark_output import last_error, log_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_runtime.settings import JobSettings

END_SECONDS = 90.0  # for which spark-submit's JVM waits for the driver at the end
_EXECUTOR_END_SECONDS = 5.0
_JVM_END_SECONDS = 1.0  # after it has stopped answering
_PLANNER = "-m pyspark.daemon pyspark.sql.worker."
_BEFORE_SPARK = 100  # a priority: Spark ends its context at 40, the highest of Hadoop's file systems is 10


class OpenedSession(NamedTuple):
    """A session of Spark."""

    # The session.
    session: SparkSession
    # Whether this process has started Spark for the job.
    is_own: bool


@contextmanager
def open_session(settings: JobSettings) -> Iterator[OpenedSession]:
    """Open a Spark session. CdcError(SPARK_SETTING) for a Spark in which the job cannot run, CdcError(SPARK_FAILED) for
    one that fails.
    """
    _refuse_connect()
    active = SparkContext._active_spark_context  # noqa: SLF001 - getOrCreate does not tell whether it was there
    if active is not None and active._jsc is not None:  # noqa: SLF001
        with spark_errors(active):
            session = SparkSession.builder.getOrCreate()
        _check(session.sparkContext)
        with planning_python(active.pythonExec):
            yield OpenedSession(session, is_own=False)
        return
    session = _start_session(settings)
    context = session.sparkContext
    application = context.applicationId  # read now: at the end Spark may be gone
    try:
        _check(context)
        with planning_python(context.pythonExec):
            yield OpenedSession(session, is_own=True)
    finally:
        _stop_context(context)
    _delete_work_folder(application)


def end_planners(context: SparkContext) -> None:
    """End the Python processes in which Spark has looked up, created and planned the data source: 200 MB, which Spark
    4.0 keeps until it ends. It starts them again should it need them.
    """
    java: Any = context._jvm.java  # type: ignore[union-attr]  # noqa: SLF001
    for child in java.lang.ProcessHandle.current().children().toArray():
        if _PLANNER in child.info().commandLine().orElse(""):
            child.destroy()


def _delete_work_folder(application: str) -> None:
    """Delete the working folders of a local cluster's executors. After an error they stay, since they have the
    executors' logs.
    """
    folder = work_folder(application)
    if folder is None:
        return
    deadline = time.monotonic() + _EXECUTOR_END_SECONDS
    while folder.exists() and time.monotonic() < deadline:  # an executor that is ending may still write
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.05)


def jvm_is_shutting_down(context: SparkContext) -> bool:
    """Return whether the JVM is shutting down; False if it is the driver's child, which ends by itself only when it
    fails.
    """
    try:
        return is_submitted() and bool(_shutdown_hooks(context).isShutdownInProgress())
    except Exception:  # noqa: BLE001 - the JVM is gone: the batch will fail and report it
        return False


def _refuse_connect() -> None:
    """Spark Connect has no SparkContext, and a client that may be away from the cluster's network."""
    if is_remote() or "SPARK_REMOTE" in os.environ or os.environ.get("SPARK_API_MODE", "").lower() == "connect":
        raise CdcError(
            Code.SPARK_SETTING,
            "This process uses Spark Connect, in which the job cannot run: its workers report to the driver's process.",
            "Use a classic Spark session: unset SPARK_REMOTE, SPARK_CONNECT_MODE_ENABLED and SPARK_API_MODE, do not "
            "set spark.remote, and set spark.api.mode=classic.",
        )


def _start_session(settings: JobSettings) -> SparkSession:
    """A session. KeyboardInterrupt ends Spark, too."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault(ARENAS, ARENAS_AT_MOST)  # of the JVM that this process starts
    conf = SparkConf()
    conf.setAll(list(session_options(settings).items()))
    try:
        _start_jvm(conf, is_local_cluster=settings.spark_master.startswith("local-cluster"))
        with _sigint_kept():
            session = SparkSession.builder.config(conf=conf).getOrCreate()
        context = session.sparkContext
        if is_submitted():
            _make_jvm_wait_for_driver(context)
        server: Any = context._accumulatorServer  # noqa: SLF001
        server.handle_error = lambda *_: None  # it would print a trace once the JVM is gone
    except CdcError:
        raise
    except Exception as error:
        raise _start_failed(error) from error
    except KeyboardInterrupt:
        if (begun := SparkContext._active_spark_context) is not None:  # noqa: SLF001 - there is no session yet
            _stop_context(begun)
        raise
    return session


def _start_failed(error: Exception) -> CdcError:
    """The error of a session that does not start. A JVM that has ended says why in what it wrote; the error itself is
    only that it does not answer any more.
    """
    process = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001 - none under spark-submit
    with suppress(subprocess.TimeoutExpired):
        if process is not None and process.wait(_JVM_END_SECONDS) is not None:
            return spark_ended("starting")
    return spark_failed(error)


def _start_jvm(conf: SparkConf, *, is_local_cluster: bool) -> None:
    """Start the JVM, unless spark-submit or an earlier session of this process has. Its stderr goes to our log."""
    if is_submitted() or SparkContext._gateway is not None:  # noqa: SLF001
        return
    reading, writing = os.pipe()
    log_lines(os.fdopen(reading, "rb"))
    try:
        with writable_home() if is_local_cluster else nullcontext():
            gateway: Any = launch_gateway(conf, {"stderr": writing})  # type: ignore[no-untyped-call]
    except Exception as error:
        os.close(writing)  # the JVM has ended: its output, too
        raise spark_failed(RuntimeError(last_error() or str(error))) from error
    os.close(writing)
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)  # noqa: SLF001


@contextmanager
def _sigint_kept() -> Iterator[None]:
    """Let PySpark set no handler of SIGINT: its own calls the JVM within another call, and takes that call's answer."""
    pyspark_module = vars(sys.modules[SparkContext.__module__])
    pyspark_module["signal"] = SimpleNamespace(SIGINT=signal.SIGINT, signal=lambda *_: None)
    try:
        yield
    finally:
        pyspark_module["signal"] = signal


def _check(context: SparkContext) -> None:
    with spark_errors(context):
        conf = dict(context.getConf().getAll())
    check_conf(conf)


def _make_jvm_wait_for_driver(context: SparkContext) -> None:
    """Add a shutdown hook to spark-submit's JVM that waits for this process before Spark's own hooks end Spark.

    The hook consists of Java objects only, so it works whatever has become of the connection to this process.
    """
    java: Any = context._jvm.java  # type: ignore[union-attr]  # noqa: SLF001
    invoke, class_of = java.lang.invoke, java.lang.Class.forName
    ended = java.lang.ProcessHandle.of(os.getpid()).get().onExit()
    get = invoke.MethodType.methodType(class_of("java.lang.Object"))
    wait = invoke.MethodHandles.publicLookup().bind(ended, "get", get)
    hook = invoke.MethodHandleProxies.asInterfaceInstance(class_of("java.lang.Runnable"), wait)
    seconds = java.util.concurrent.TimeUnit.SECONDS
    _shutdown_hooks(context).addShutdownHook(hook, _BEFORE_SPARK, int(END_SECONDS), seconds)


def _shutdown_hooks(context: SparkContext) -> Any:  # noqa: ANN401 - Java's
    jvm: Any = context._jvm  # noqa: SLF001
    return jvm.org.apache.hadoop.util.ShutdownHookManager.get()


def _stop_context(context: SparkContext) -> None:
    """Stop Spark, and ignore that its JVM may be gone: that was reported before, and PySpark would warn or raise."""
    with warnings.catch_warnings(), suppress(OSError):
        warnings.simplefilter("ignore", RuntimeWarning)
        context.stop()
