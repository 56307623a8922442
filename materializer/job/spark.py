"""Starts the job in Spark and stops it.

The job is a streaming query of Spark. Spark starts the workers, runs the tasks of each micro-batch and retries failed
ones. It keeps no state: positions are the consumer group's (docs/decisions/0004).
"""

from __future__ import annotations

import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import structlog

from cdc_program.errors import CdcError, Code
from cdc_program.metrics import Collected
from cdc_program.operations import Operations
from cdc_program.registry import RegistryClient
from materializer.job.driver import BatchDriver
from materializer.job.lag_watch import LagWatch, UnreadKafka
from materializer.job.planner import Planner
from materializer.job.spark_session import END_SECONDS, jvm_is_shutting_down, open_session
from materializer.job.status import JobStatus
from materializer.job.stopped import Failure, StoppedPartitions
from materializer.job.streaming import StreamingWorkers
from materializer.job.wiring import object_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from pyspark import SparkContext

    from cdc_program.settings import MaterializerSettings, Settings
    from materializer.records import RawPartition

_logger = structlog.get_logger(__name__)
_RETRY_SECONDS = 0.5
_HEALTH_SECONDS = 600.0  # a batch may restore a large state
_LAST_BATCH_SECONDS = END_SECONDS - 30.0


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
        planner.check_registry()
        with open_session(own) as opened, StreamingWorkers(opened, settings) as workers, lags:
            driver = BatchDriver(settings, planner, stop, workers, status)
            driver.stop_raw_partitions({each: Failure(error) for each, error in failures.items()})
            workers.start(own.group_id)
            _logger.info("ready")
            with _stop_in_time(opened.session.sparkContext, workers, stop):
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
def _stop_in_time(context: SparkContext, workers: StreamingWorkers, stop: threading.Event) -> Iterator[None]:
    """Cancels the last batch if it takes too long after a stop. Its transactions are aborted.

    A shutdown of spark-submit's JVM by YARN, Kubernetes or Ctrl-C stops the job too.
    """
    ended = threading.Event()

    def watch() -> None:
        while not stop.wait(_RETRY_SECONDS):
            if jvm_is_shutting_down(context):
                _logger.info("spark jvm is shutting down")
                stop.set()
        if not ended.wait(_LAST_BATCH_SECONDS):
            workers.cancel()

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
    """SIGTERM and SIGINT only set the event. An exception would break a call to the JVM that is under way.

    Only the main thread has signals. Another one is stopped by its Spark session's end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

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
