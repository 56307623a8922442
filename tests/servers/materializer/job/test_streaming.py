"""The streaming query in a real Spark, without Kafka: what it shows, what it survives, and what it leaves alone."""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from cdc_common.errors.codes import CdcError, Code
from materializer.settings import MaterializerSettings
from stream_runtime.query.data_source import FORMAT, reports, source
from stream_runtime.query.rounds import Rounds
from stream_runtime.query.spark_errors import SparkInterruptedError
from stream_runtime.query.spark_session import open_session
from stream_runtime.query.streaming import StreamingWorkers
from stream_runtime.worker.task import Assignment
from tests.support.materializer.streaming_job import RAW, Job
from tests.support.materializer.streaming_task import MESSAGES, NotingTask, read_folded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

IDLE_WORKER_SECONDS = 60.0  # Spark's PythonWorkerFactory.IDLE_WORKER_TIMEOUT_NS


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """A Spark of two cores in one process: `local[2,4]`. A SIGINT that comes while it starts is the program's."""
    settings = MaterializerSettings(spark_master="local[2,4]")
    start, signals = SparkSession.__init__, list[int]()

    def start_with_signal(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - PySpark's
        signal.raise_signal(signal.SIGINT)
        start(*args, **kwargs)

    before = signal.signal(signal.SIGINT, lambda number, _: signals.append(number))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkSession, "__init__", start_with_signal)
        with open_session(settings) as opened:
            patch.undo()
            signal.signal(signal.SIGINT, before)
            assert opened.is_own
            assert signals == [signal.SIGINT]
            yield opened.session


@pytest.fixture
def job(session: SparkSession, tmp_path: Path) -> Iterator[Job]:
    made = Job(session, tmp_path)
    yield made
    made.workers.stop()


def test_raw_partitions_stay_in_their_processes_and_spark_shows_the_query(session: SparkSession, job: Job) -> None:
    job.run_until_all()
    settled = job.rounds
    for _ in range(5):
        assert len(job.run()) == len(RAW)
    job.check_nothing_twice()
    homes: dict[str, set[int]] = {}
    for folded in read_folded(job.folder):
        if folded.round > settled:
            homes.setdefault(folded.raw_partition, set()).add(folded.process)
    assert all(len(processes) == 1 for processes in homes.values())
    assert len(set.union(*homes.values())) == 2

    query = job.workers._query
    assert query is not None
    assert query.name == "the-group"
    deadline = time.monotonic() + 30  # Spark says so a little later
    while (last := query.lastProgress) is None or last.numInputRows != MESSAGES * len(RAW):
        assert time.monotonic() < deadline
    assert last.processedRowsPerSecond > 0
    positions = ast.literal_eval(str(last.sources[0].endOffset))["positions"][RAW[0].stream]
    assert set(positions) == {share.number for share in RAW}
    progress = job.workers.progress()
    assert progress is not None
    assert (progress.query, progress.workers) == ("the-group", 2)
    assert progress.seconds > 0
    job_id = max(session.sparkContext.statusTracker().getJobIdsForGroup(str(query.runId)))
    shown: Any = session.sparkContext._jsc.sc().statusStore()
    description = shown.job(job_id).description().get()
    assert re.fullmatch(r"micro-batch \d+: fold 4 raw partitions", description)


def test_pandas_is_not_needed() -> None:
    """The tests here and elsewhere run without it."""
    assert importlib.util.find_spec("pandas") is None


def test_a_task_that_fails_is_run_again_and_nothing_is_folded_twice(job: Job) -> None:
    job.run_until_all()
    results = job.run(fails_once=True)
    assert (job.folder / "failed").exists()
    assert results  # of the other process at least: the retried task may meet a process that has its share already
    job.run_until_all()
    job.check_nothing_twice()


def test_a_task_that_fails_too_often_ends_the_job_with_its_own_words(job: Job) -> None:
    with pytest.raises(CdcError, match="a defect") as caught:
        job.run(fails=True)
    assert caught.value.code is Code.SPARK_FAILED
    assert "Traceback" not in caught.value.problem


@pytest.mark.exhaustive  # test_spark kills a whole job in every run
def test_a_query_whose_processes_die_is_started_again_and_folds_nothing_twice(job: Job) -> None:
    job.run_until_all()
    for _ in range(2):
        with pytest.raises(SparkInterruptedError, match="a Python worker was killed or crashed"):
            job.run(dies=True)
        job.workers.restart()
        job.run_until_all()
    job.check_nothing_twice()
    query = job.workers._query
    assert query is not None
    assert query.name == "the-group"


@pytest.mark.exhaustive
def test_processes_survive_a_neighbour_that_is_slower_than_spark_s_patience(job: Job) -> None:
    """Spark ends a Python worker that had no task for a minute, and with it all that it has open."""
    job.run_until_all()
    job.run()
    homes = {folded.raw_partition: folded.process for folded in read_folded(job.folder) if folded.round == job.rounds}
    assert len(set(homes.values())) == 2
    job.run(IDLE_WORKER_SECONDS + 15.0, is_cut=False, only=str(RAW[0]))
    job.run()
    assert {
        folded.raw_partition: folded.process for folded in read_folded(job.folder) if folded.round == job.rounds
    } == homes
    job.check_nothing_twice()


def test_two_jobs_in_one_spark_do_not_meet(session: SparkSession, job: Job, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    other = Job(session, folder, "another-group")
    try:
        for spark_job in (job, other):
            spark_job.run_until_all()
        rounds = [threading.Thread(target=spark_job.run, args=(0.2,)) for spark_job in (job, other)]
        for thread in rounds:
            thread.start()
        for thread in rounds:
            thread.join(60)
        for spark_job in (job, other):
            spark_job.run_until_all()
            spark_job.check_nothing_twice()
        other_progress = other.workers.progress()
        assert other_progress is not None
        assert other_progress.query == "another-group"
    finally:
        other.workers.stop()


@pytest.mark.parametrize("times", [2, pytest.param(5, marks=pytest.mark.exhaustive)])
def test_it_stops_between_two_micro_batches(session: SparkSession, tmp_path: Path, times: int) -> None:
    """Spark 4.0 ends with a StackOverflowError if it is stopped in the middle of one."""
    for number in range(times):
        folder = tmp_path / str(number)
        folder.mkdir()
        job = Job(session, folder)
        query = job.workers._query
        assert query is not None
        for _ in range(number + 1):
            job.run()
        job.workers.stop()
        assert not query.isActive
        assert query.exception() is None
    assert not session.streams.active


def test_its_checkpoint_is_of_no_consequence(job: Job) -> None:
    """Whoever deletes it ends the query at most; positions are the group's."""
    job.run_until_all()
    checkpoint = job.workers._checkpoint
    assert checkpoint is not None
    names = {path.name for path in checkpoint.iterdir()}
    assert {"offsets", "commits"} <= names
    for name in names:  # what Spark writes at the same time may stay
        if (checkpoint / name).is_dir():
            shutil.rmtree(checkpoint / name, ignore_errors=True)
        else:
            (checkpoint / name).unlink(missing_ok=True)
    try:
        for _ in range(3):
            job.run()
    except CdcError as error:
        assert error.code is Code.SPARK_FAILED  # noqa: PT017 - either is right
    job.check_nothing_twice()
    job.workers.stop()
    assert not checkpoint.exists()


def test_two_actions_on_one_micro_batch_fold_once(session: SparkSession, tmp_path: Path) -> None:
    """The second one reads the source again, which has nothing more to give."""
    rounds = Rounds("127.0.0.1", "127.0.0.1")
    counts: list[list[int]] = []

    def take(frame: DataFrame, _batch: int) -> None:
        rows = frame.where("report IS NOT NULL").collect()
        counts.append([len(rows), frame.count()])
        rounds.deliver(reports(rows))

    session.dataSource.register(source(rounds.address))
    query = session.readStream.format(FORMAT).load().writeStream.foreachBatch(take).start()
    try:
        names = rounds.list_workers(1)
        task: Any = NotingTask(tmp_path, 1)
        results = rounds.run(task, {names[0]: Assignment(tuple(RAW), 100, 0.0)}, lambda: None)
        assert len(results) == len(RAW)
        assert counts == [[len(RAW), 0]]
        assert len(read_folded(tmp_path)) == len(RAW)
    finally:
        rounds.close()
        rounds.wait_until_idle(30)
        query.stop()


class Heard(StreamingQueryListener):
    """An operator's listener. names: of queries that have started."""

    def __init__(self) -> None:
        self.names: list[str | None] = []

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        self.names.append(event.name)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        pass

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        pass


def test_a_session_that_exists_is_used_and_left_running(session: SparkSession) -> None:
    """It may have listeners; a query is one of its own. Its options stay as they are."""
    options = ("spark.sql.adaptive.enabled", "spark.sql.streaming.metricsEnabled", "spark.sql.codegen.wholeStage")
    session.conf.set("spark.sql.codegen.wholeStage", "true")
    before = [session.conf.get(option) for option in options]
    heard = Heard()
    session.streams.addListener(heard)
    with open_session(MaterializerSettings(spark_master="local[7]", group_id="another")) as opened:
        assert not opened.is_own
        assert opened.session.sparkContext is session.sparkContext
        with StreamingWorkers(opened, MaterializerSettings(), ()) as workers:
            workers.start("another")
            assert [query.name for query in session.streams.active] == ["another"]
    session.streams.removeListener(heard)
    assert heard.names == ["another"]
    assert [session.conf.get(option) for option in options] == before
    session.conf.unset("spark.sql.codegen.wholeStage")
    assert session.sparkContext.master == "local[2,4]"
    assert session.range(3).count() == 3


def test_the_port_that_spark_calls_back_is_on_loopback_only(job: Job) -> None:
    """Py4J asks for no secret there. A process of another machine must not reach it."""
    job.run()
    gateway: Any = job.workers._context._gateway
    assert gateway._callback_server.server_socket.getsockname()[0] == "127.0.0.1"
    listening = {
        connection.laddr.ip
        for connection in psutil.Process().net_connections()
        if connection.status == psutil.CONN_LISTEN and connection.type == socket.SOCK_STREAM
    }
    assert listening <= {"127.0.0.1", "::1"}
