"""Spark Structured Streaming: it plans the batches, spreads them, runs failed tasks again; positions are the group's.

Its own checkpoint is a temporary folder, made anew at each start: see docs/decisions/0004.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc_program.errors import CdcError, Code
from cdc_program.registry import RegistryClient
from materializer.file_store import FileStore
from materializer.java_client import source_options
from materializer.renewal import Renewal
from materializer.session import session_options
from materializer.tables import Planner, raw_topic_pattern
from materializer.worker import INPUT_COLUMNS, REPORT_SCHEMA, BatchTask, TaskResult, read_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from cdc_program.settings import Settings
    from materializer.plan import BatchPlan
    from materializer.task import Work

_logger = structlog.get_logger(__name__)
_RETRY_SECONDS = 2.0
_LOOK_SECONDS = 0.1
_STARTS = 5
_OTHER_TOPICS = "startingOffsets contains specific offsets"  # of Spark's assertion that they cover all partitions
_LAST_BATCH_SECONDS = 60.0
_SILENCE_SECONDS = 600.0
_MAY_GO_AWAY = {Code.REGISTRY_UNREACHABLE, Code.KAFKA_UNREACHABLE, Code.CHECKPOINT_LOCATION}
_INPUT = {"timestamp_ms": "unix_millis(timestamp)", "key": "coalesce(key, x'')", "value": "coalesce(value, x'')"}


def run(settings: Settings, make_work: Callable[[BatchPlan, str], Work] | None = None) -> None:
    """Materialize until SIGTERM or SIGINT; CdcError where it cannot go on."""
    stop = threading.Event()
    with _stop_signals(stop), RegistryClient(settings.registry) as registry:
        planner = Planner(settings, registry)
        planner.check_settings()
        FileStore(settings.materializer.checkpoint_location).check()
        _starting_offsets(planner, settings)  # what stops it shows before Spark has started
        registry.check_reachable()
        with _session(settings) as session:
            _materialize(session, settings, Batches(settings, planner, stop, make_work))


def _materialize(session: SparkSession, settings: Settings, batches: Batches) -> None:
    """Start the query, again when the raw topics have changed meanwhile."""
    with tempfile.TemporaryDirectory(prefix="cassandra-materializer-") as checkpoints:
        for attempt in range(_STARTS):
            try:
                _follow(batches, _start(session, settings, batches, Path(checkpoints) / str(attempt)))
                break
            except TopicsChangedError as error:
                _logger.info("raw topics have changed during the start")
                if attempt == _STARTS - 1:
                    raise spark_failed(error) from error


def _starting_offsets(planner: Planner, settings: Settings) -> dict[str, dict[str, int]]:
    """As Planner; waits a moment for a cluster that has just started."""
    deadline = time.monotonic() + settings.kafka.connect_timeout_seconds
    while True:
        try:
            return planner.starting_offsets()
        except CdcError as error:
            if error.code is not Code.KAFKA_UNREACHABLE or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_SECONDS / 4)


class TopicsChangedError(Exception):
    """A raw topic was made or deleted between our look at them and Spark's."""


class Batches:
    """What is done with each micro-batch; `failure` is what ended it."""

    def __init__(
        self,
        settings: Settings,
        planner: Planner,
        stop: threading.Event,
        make_work: Callable[[BatchPlan, str], Work] | None,
    ) -> None:
        self.planner = planner
        self.stop = stop
        self.failure: CdcError | None = None
        self._schema_wait = settings.materializer.schema_wait_seconds
        self._make_work = make_work
        self._silence = SilenceAlert()
        self._renewal = Renewal(settings)
        self._idle = threading.Condition()
        self._is_busy = False

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """For foreachBatch. When it is to stop, a batch counts as done though it is not: positions are the group's."""
        with self._idle:
            if self.stop.is_set() or self.failure:
                return
            self._is_busy = True
        try:
            self._process(frame, batch)
        except CdcError as error:
            self.failure = error
        except Exception as error:  # noqa: BLE001 - whatever Spark or Python raise ends in one error
            self.failure = spark_failed(error)
        finally:
            with self._idle:
                self._is_busy = False
                self._idle.notify_all()

    def renew_when_idle(self) -> None:
        """Keep the positions of quiet partitions, unless a batch is in process, which then does it."""
        with self._idle:
            if not self._is_busy and self._renewal.is_due:
                try:
                    self._renew()
                except CdcError as error:
                    self.failure = error

    def _renew(self) -> None:
        try:
            self._renewal.run(self.planner.raw_partitions())
        except CdcError as error:
            if error.code not in {Code.KAFKA_UNREACHABLE, Code.KAFKA_REFUSED}:
                raise
            _logger.warning("positions not renewed", code=error.code.text, problem=error.problem, fix=error.fix)

    def wait_until_idle(self) -> None:
        with self._idle:
            self._idle.wait_for(lambda: not self._is_busy, _LAST_BATCH_SECONDS)

    def _process(self, frame: DataFrame, batch: int) -> None:
        """Run the tasks, again while a schema that they need is not known or the checkpoint location is away."""
        if self._renewal.is_due:
            self._renew()
        deadline = time.monotonic() + self._schema_wait
        while (plan := self._plan()) is not None:
            started = time.monotonic()
            results = self._run(frame, plan)
            errors = [result.error for result in results if result.error is not None]
            _log_batch(batch, results, time.monotonic() - started)
            self._silence.report(results)
            _say_dead_letters(results)
            if not errors:
                return
            is_late = time.monotonic() > deadline
            for error in errors:
                if error.code not in _MAY_GO_AWAY and (is_late or error.code is not Code.SCHEMA_UNKNOWN):
                    raise error
            _logger.warning("waiting", code=errors[0].code.text, problem=errors[0].problem, fix=errors[0].fix)
            self.stop.wait(min(_RETRY_SECONDS, self._schema_wait / 4))

    def _plan(self) -> BatchPlan | None:
        """The batch's plan; waits while registry or Kafka are down. None if it is to stop."""
        while not self.stop.is_set():
            try:
                return self.planner.plan()
            except CdcError as error:
                if error.code not in _MAY_GO_AWAY:
                    raise
                _logger.warning("waiting", code=error.code.text, problem=error.problem, fix=error.fix)
            self.stop.wait(_RETRY_SECONDS)
        return None

    def _run(self, frame: DataFrame, plan: BatchPlan) -> list[TaskResult]:
        columns = (f"{_INPUT.get(name, name)} AS {name}" for name in INPUT_COLUMNS)
        task = BatchTask(plan, self._make_work)
        rows = frame.selectExpr(*columns).mapInArrow(task, REPORT_SCHEMA).collect()
        return [read_result(*row) for row in rows]


class SilenceAlert:
    """Says which publishers are not heard of, now and then for as long as it lasts."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], float] = {}

    def report(self, results: list[TaskResult]) -> None:
        now = time.monotonic()
        silent = {
            (result.partition.topic, host)
            for result in results
            if result.report is not None
            for host in result.report.silent_hosts
        }
        for topic, host in sorted(silent):
            if now - self._said.get((topic, host), -math.inf) >= _SILENCE_SECONDS:
                self._said[topic, host] = now
                _logger.warning(
                    "publisher silent",
                    code=Code.PUBLISHER_SILENT.text,
                    host=host,
                    topic=topic,
                    problem="Nothing has been heard of it for long: no tombstone is purged meanwhile.",
                    fix="Start it; if its node is gone for good, add the host id to materializer.forgotten_hosts.",
                )


def _say_dead_letters(results: list[TaskResult]) -> None:
    for partition, report, _ in results:
        if report is not None and report.dead_letters:
            _logger.warning(
                "raw messages put aside",
                code=Code.DEAD_LETTER.text,
                partition=str(partition),
                count=report.dead_letters,
                problem="They cannot be read; changes of their Cassandra partitions say so (source.inexact).",
                fix="See `cassandra-materializer dead-letters ls`; replay what can be read by a newer materializer.",
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


def _log_batch(batch: int, results: list[TaskResult], seconds: float) -> None:
    reports = [result.report for result in results if result.report is not None]
    _logger.debug(
        "batch",
        batch=batch,
        partitions=len(results),
        messages=sum(report.messages for report in reports),
        changes=sum(report.changes for report in reports),
        read_bytes=sum(report.read for report in reports),
        written_bytes=sum(report.written for report in reports),
        slowest_ms=round(1000 * max((report.seconds for report in reports), default=0.0)),
        ms=round(1000 * seconds),
    )


def _start(session: SparkSession, settings: Settings, batches: Batches, checkpoint: Path) -> StreamingQuery:
    starting = _starting_offsets(batches.planner, settings)
    reader = (
        session.readStream.format("kafka")
        .options(**source_options(settings.kafka))
        .option("subscribePattern", raw_topic_pattern(settings.kafka.topic_prefix))
        .option("startingOffsets", json.dumps(starting))
        .option("maxOffsetsPerTrigger", settings.materializer.max_offsets_per_trigger)
        # What retention has deleted is missing in a task's offsets, which says more than Spark would.
        .option("failOnDataLoss", "false")
    )
    return (
        reader.load()
        .writeStream.foreachBatch(batches)
        .trigger(processingTime=f"{settings.materializer.trigger_interval_ms} milliseconds")
        .option("checkpointLocation", checkpoint.as_uri())
        .start()
    )


def _follow(batches: Batches, query: StreamingQuery) -> None:
    """Until the query ends or is to be stopped."""
    is_ready = False
    try:
        while not batches.stop.is_set() and batches.failure is None:
            if query.awaitTermination(_LOOK_SECONDS):  # type: ignore[arg-type]  # it takes fractions
                break
            if not is_ready and "nitializing" not in query.status["message"]:
                _logger.info("ready")
                is_ready = True
            batches.renew_when_idle()
    except PySparkException as error:
        if _OTHER_TOPICS in str(error):
            raise TopicsChangedError from error
        raise batches.failure or spark_failed(error) from error
    batches.wait_until_idle()
    query.stop()
    if batches.failure is not None:
        raise batches.failure


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
def _session(settings: Settings) -> Iterator[SparkSession]:
    """A session whose context's own SIGINT handler is put aside."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    handler = signal.getsignal(signal.SIGINT)
    builder: SparkSession.Builder = SparkSession.builder
    for name, value in session_options(settings.materializer).items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        raise spark_failed(error) from error
    signal.signal(signal.SIGINT, handler)
    try:
        _refuse(session)
        yield session
    finally:
        application = session.sparkContext.applicationId
        session.stop()
        shutil.rmtree(Path(os.environ.get("SPARK_HOME", "")) / "work" / application, ignore_errors=True)


def _refuse(session: SparkSession) -> None:
    if session.conf.get("spark.speculation", "false") == "true":
        raise CdcError(
            Code.SPARK_SETTING,
            "spark.speculation is on: two attempts of a task would fence each other for ever.",
            "Set spark.speculation=false for this job.",
        )
