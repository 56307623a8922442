"""The job's streaming query: Spark runs each round as a micro-batch of the source `cassandra_cdc`."""

from __future__ import annotations

import shutil
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from stream_runtime.query.data_source import FORMAT, reports, source
from stream_runtime.query.progress import Progress
from stream_runtime.query.rounds import Rounds
from stream_runtime.query.slots import Slots
from stream_runtime.query.spark_errors import has_ended, spark_errors, spark_failed
from stream_runtime.query.spark_session import end_planners
from stream_runtime.words import NEUTRAL, Words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from stream_runtime.query.spark_session import OpenedSession
    from stream_runtime.settings import JobSettings
    from stream_runtime.worker.task import Assignment, Task, TaskResult

_IDLE_SECONDS = 30.0  # in which Spark ends a micro-batch whose round is over
_STARTS = threading.Lock()  # another job of this process registers a source of the same name in the same session
_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder in it is made by tempfile

# Of the query. Its plan is the same in each micro-batch, and tiny.
_OPTIONS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    "spark.sql.streaming.metricsEnabled": "true",
}


class StreamingWorkers:
    """The processes of Spark's executors as the job's workers (driver.Workers).

    CdcError(SPARK_FAILED) if the query has ended, for instance because a task has failed too often.
    known: as task_pickle's: what the tasks have that is secret.
    """

    def __init__(
        self, opened: OpenedSession, settings: JobSettings, known: Sequence[object], words: Words = NEUTRAL
    ) -> None:
        self._words = words
        session = opened.session
        self._has_planners = opened.is_own
        self._known = known
        self._context = session.sparkContext
        self._session = session
        conf = self._context.getConf()
        self._rounds = self._new_rounds()
        self._name = ""
        seconds = settings.task_seconds
        self._slots = Slots(dict(conf.getAll()), lambda: self._context.defaultParallelism, seconds)
        self._query: StreamingQuery | None = None
        self._description = ""
        self._checkpoint: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """An error of Spark's has ended the query, or the JVM is gone: then there is nothing to stop."""
        try:
            self.stop()
        except Exception:
            if error is None and not has_ended(self._context):
                raise

    def start(self, name: str) -> None:
        """Start the query; it waits for the first round."""
        self._name = name
        self._checkpoint = _checkpoint_folder()
        with _STARTS, spark_errors(self._context), _options(self._session):
            self._session.dataSource.register(source(self._rounds.address, self._known))
            frame = self._session.readStream.format(FORMAT).load()
            writer = frame.writeStream.queryName(name).option("checkpointLocation", self._checkpoint.as_uri())
            self._query = writer.foreachBatch(self._take).start()

    def restart(self) -> None:
        """Start another query after one that has failed. What is left of its tasks meets no service of rounds any more.

        CdcError(SPARK_FAILED).
        """
        with spark_errors(self._context):
            self.stop()
            self._rounds = self._new_rounds()
            self.start(self._name)

    def _new_rounds(self) -> Rounds:
        conf = self._context.getConf()
        host = conf.get("spark.driver.host", "127.0.0.1")
        assert host is not None
        return Rounds(host, conf.get("spark.driver.bindAddress", host) or host, self._known)

    def list_workers(self, shares: int) -> list[str]:
        rounds = self._rounds
        with spark_errors(self._context):
            planned = self._slots.plan(shares, rounds.processes, rounds.load, is_behind=rounds.is_behind)
            return rounds.list_workers(planned.slots, exactly=planned.is_exact)

    def run_task(
        self, task: Task, assignments: Mapping[str, Assignment], is_cut: Callable[[], bool]
    ) -> list[TaskResult]:
        _, seconds, is_exact = self._slots.planned
        count = sum(len(assignment.shares) for assignment in assignments.values())
        self._description = f"{self._words.do} {count:,} {self._words.partitions}"

        def is_over() -> bool:
            return is_cut() or (is_exact and self._rounds.is_behind)

        with spark_errors(self._context):
            results = self._rounds.run(task, assignments, self._check, seconds, is_over)
            if self._has_planners:
                self._has_planners = False
                end_planners(self._context)
            return results

    def progress(self) -> Progress | None:
        """The progress of the last micro-batch that Spark has ended."""
        assert self._query is not None
        with spark_errors(self._context):
            last = self._query.lastProgress
        return None if last is None else Progress.of(last, self._rounds.processes)

    def cancel(self) -> None:
        """End the micro-batch that is under way. Its transactions are aborted."""
        if self._query is not None:
            self._context.cancelJobGroup(str(self._query.runId))

    def stop(self) -> None:
        """Stop the query between two micro-batches: Spark 4.0 does not survive a stop in the middle of one."""
        self._rounds.close()
        if self._query is not None:
            if self._query.isActive:
                self._rounds.wait_until_idle(_IDLE_SECONDS)
            self._query.stop()
        if self._checkpoint is not None:
            shutil.rmtree(self._checkpoint, ignore_errors=True)

    def _take(self, frame: DataFrame, batch: int) -> None:
        """One action, so that each task runs once."""
        self._context.setJobDescription(f"micro-batch {batch}: {self._description}")
        self._rounds.deliver(reports(frame.where("report IS NOT NULL").collect()))

    def _check(self) -> None:
        assert self._query is not None
        if not self._query.isActive:
            raise spark_failed(self._query.exception() or RuntimeError("The streaming query was stopped."))


@contextmanager
def _options(session: SparkSession) -> Iterator[None]:
    """A query takes the session's options with it when it starts. Those of the session's owner are restored then."""
    before: dict[str, str | None] = {option: session.conf.get(option, None) for option in _OPTIONS}
    for option, value in _OPTIONS.items():
        session.conf.set(option, value)
    try:
        yield
    finally:
        for option, earlier in before.items():
            if earlier is None:
                session.conf.unset(option)
            else:
                session.conf.set(option, earlier)


def _checkpoint_folder() -> Path:
    """Create the folder in which Spark writes two small files for each micro-batch. Nothing reads them, because
    positions are the group's offsets, so the folder is in memory where the system has such a file system.
    """
    memory = str(_MEMORY) if _MEMORY.is_dir() else None
    try:
        return Path(tempfile.mkdtemp(prefix="cassandra-cdc-", dir=memory))
    except OSError:
        return Path(tempfile.mkdtemp(prefix="cassandra-cdc-"))
