"""Running a job in Spark until it is stopped: by a signal, by the end of spark-submit's JVM, or by an error."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from queue import SimpleQueue
from typing import TYPE_CHECKING

import structlog

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.query.spark_session import END_SECONDS, jvm_is_shutting_down, open_session
from stream_runtime.query.streaming import StreamingWorkers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from pyspark import SparkContext

    from stream_runtime.driver.driver import BatchDriver
    from stream_runtime.settings import JobSettings
    from stream_runtime.words import Words

_logger = structlog.get_logger(__name__)
_RETRY_SECONDS = 0.5
_LAST_BATCH_SECONDS = END_SECONDS - 30.0


def run_in_spark(  # noqa: PLR0913, PLR0917 - what a job is made of
    settings: JobSettings,
    known: Sequence[object],
    make_driver: Callable[[StreamingWorkers], BatchDriver],
    stop: threading.Event,
    beat: Callable[[], None],
    words: Words,
) -> None:
    """Start Spark and the driver's batches, until `stop` is set. known: as StreamingWorkers'. beat: as the driver's.

    CdcError if the job as a whole cannot continue.
    """
    with open_session(settings) as opened, StreamingWorkers(opened, settings, known, words) as workers:
        driver = make_driver(workers)
        workers.start(settings.group_id)
        _logger.info("ready")
        with _stop_in_time(opened.session.sparkContext, workers, stop):
            driver.run_until_stopped(beat)


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
def stop_signals(stop: threading.Event) -> Iterator[None]:
    """SIGTERM and SIGINT only set the event. An exception would break a call to the JVM that is under way.

    Only the main thread has signals. Another one is stopped by its Spark session's end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    asked = SimpleQueue[bool]()  # its `put` may interrupt itself; Event.set would wait for the lock that it interrupts

    def request(_number: int, _frame: FrameType | None) -> None:
        asked.put(True)

    def pass_on() -> None:
        if asked.get():
            stop.set()

    passer = threading.Thread(target=pass_on, daemon=True)
    passer.start()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        for number in before:
            signal.signal(number, request)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        asked.put(False)
        passer.join()
