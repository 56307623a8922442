"""The driver stops what fails, and goes on with everything else."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from cdc_common.errors.codes import CdcError, Code
from materializer.errors import RAW_FAULTS
from materializer.job.status import JobStatus
from materializer.settings import MaterializerSettings, Settings
from materializer.worker.batch_plan import BatchPlan
from materializer.worker.worker_loop import BatchTask
from stream_runtime.driver import driver
from stream_runtime.driver.driver import BatchDriver
from stream_runtime.driver.spark_retries import SparkRetries
from stream_runtime.driver.stopped import StoppedShares
from stream_runtime.exactly_once.report import Report
from stream_runtime.query.spark_errors import SparkInterruptedError
from stream_runtime.records import Share, TopicShape
from stream_runtime.worker.task import TaskResult
from tests.support.materializer.job_mutants import stop_all_on_one
from tests.support.stream_runtime.shares import share

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from stream_runtime.worker.task import Assignment, Task

TOPICS = ("cdc.raw.ks.a", "cdc.raw.ks.b", "cdc.raw.ks.c")
A, B, C = (share(topic, 0) for topic in TOPICS)


def error(code: Code) -> CdcError:
    return CdcError(code, "It does not go.", "Make it go.")


class ScriptedPlanner:
    """Three topics of one raw partition. `broken`: errors of topics; `away`: of whole plans, each for one."""

    def __init__(self) -> None:
        self.errors: dict[str, CdcError] = {}
        self.broken: dict[str, CdcError] = {}
        self.away: list[CdcError] = []
        self.planned: list[str] = []
        self.pending: set[str] = set()

    def plan_batch(self) -> BatchPlan:
        if self.away:
            raise self.away.pop(0)
        for topic in TOPICS:
            if topic not in self.errors:
                self.planned.append(topic)
                if topic in self.broken:
                    self.errors[topic] = self.broken[topic]
        settings = Settings()
        return BatchPlan({}, settings.kafka, settings.materializer, dict.fromkeys(TOPICS, TopicShape(1, "id")))

    def make_task(self, plan: BatchPlan) -> BatchTask:
        return BatchTask(plan)

    def first_share(self, stream: str) -> Share:
        return share(stream, 0)

    def retry(self, streams: Collection[str]) -> None:
        for topic in streams:
            self.errors.pop(topic, None)


class ScriptedWorkers:
    """One worker. `failing`: the errors of raw partitions; all others fold a message."""

    def __init__(self) -> None:
        self.failing: dict[Share, TaskResult] = {}
        self.assigned: list[list[Share]] = []
        self.folded = 0
        self.is_cut: Callable[[], bool] = lambda: False
        self.interruptions: list[CdcError] = []
        self.restarts: list[CdcError | None] = []
        self.restarted = 0

    def list_workers(self, raw_partitions: int) -> Sequence[str]:
        assert raw_partitions == len(TOPICS)
        return ["worker"]

    def progress(self) -> None: ...

    def restart(self) -> None:
        self.restarted += 1
        if self.restarts and (error := self.restarts.pop(0)) is not None:
            raise error

    def run_task(
        self, _task: Task, assignments: Mapping[str, Assignment], is_cut: Callable[[], bool]
    ) -> list[TaskResult]:
        self.is_cut = is_cut
        if self.interruptions:
            raise self.interruptions.pop()
        self.assigned.append(sorted(assigned_share for one in assignments.values() for assigned_share in one.shares))
        self.folded += 1
        report = Report(0, self.folded, 1, 0, 1, 0.1)
        return [
            self.failing.get(assigned_share, TaskResult(assigned_share, report, None))
            for assigned_share in self.assigned[-1]
        ]

    def fail(self, raw_partition: Share, code: Code, offsets: tuple[int, int] | None = None) -> None:
        self.failing[raw_partition] = TaskResult(raw_partition, None, error(code), offsets, "a trace")


class NoLags:
    """stream_runtime.driver.lag_watch.LagWatch."""

    def set_shares(self, raw_partitions: Sequence[Share]) -> None: ...

    def measure_soon(self) -> None: ...


class Scene:
    """A driver whose clock is moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.planner = ScriptedPlanner()
        self.workers = ScriptedWorkers()
        self.stopped = StoppedShares(lambda: self.now, self.wall)
        lags: Any = NoLags()
        planner: Any = self.planner
        self.status = JobStatus("g", self.stopped, lags)
        self.driver = BatchDriver(
            MaterializerSettings(), planner, threading.Event(), self.workers, self.status, RAW_FAULTS.words
        )

    def wall(self) -> float:
        return 1_800_000_000.0 + self.now

    def run(self, seconds: float = 1.0) -> list[Share]:
        """One batch: what was assigned in it."""
        before = len(self.workers.assigned)
        self.driver.run_batch()
        self.now += seconds
        return self.workers.assigned[before] if len(self.workers.assigned) > before else []

    def codes(self) -> dict[Share, Code]:
        return {stopped_share: stop.failure.error.code for stopped_share, stop in self.stopped.all().items()}


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(driver, "_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(driver, "_BATCH_SECONDS", 0.01)
    return Scene()


def check_one_failure_stops_one(scene: Scene) -> None:
    scene.workers.fail(B, Code.STATE_DAMAGED)
    assert scene.run(0.5) == [A, B, C]
    assert scene.codes() == {B: Code.STATE_DAMAGED}
    assert scene.run(0.5) == [A, C]
    assert scene.run(0.5) == [A, B, C]  # after a second it is tried again


def test_one_failure_stops_one_raw_partition(scene: Scene) -> None:
    check_one_failure_stops_one(scene)


def test_a_driver_that_stops_all_on_one_is_noticed(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    stop_all_on_one(monkeypatch)
    with pytest.raises(CdcError, match="It does not go"):
        check_one_failure_stops_one(scene)


def test_a_raw_partition_that_works_again_is_resumed(scene: Scene) -> None:
    scene.workers.fail(B, Code.STATE_DAMAGED)
    with structlog.testing.capture_logs() as logged:
        for _ in range(5):
            scene.run(400)
        scene.workers.failing.clear()
        scene.run()
    assert scene.codes() == {}
    events = [(entry["event"], entry["code"]) for entry in logged if entry["log_level"] in ("error", "info")]
    assert events == [("raw partition stopped", "CDC-052"), ("raw partition resumed", "CDC-052")]


def test_what_heals_by_itself_is_an_error_only_once_it_lasts(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_runtime.driver.stop_log.time.time", scene.wall)
    scene.workers.fail(B, Code.KAFKA_UNREACHABLE)
    levels = []
    for _ in range(8):
        with structlog.testing.capture_logs() as logged:
            scene.run(15)
        levels += [(entry["event"], entry["log_level"]) for entry in logged if "raw partition" in entry["event"]]
    assert levels == [("raw partition waits", "warning"), ("raw partition stopped", "error")]
    assert scene.codes() == {B: Code.KAFKA_UNREACHABLE}


def test_the_log_has_offset_fix_and_trace_once(scene: Scene) -> None:
    scene.workers.fail(B, Code.UNEXPECTED, (17, 20))
    with structlog.testing.capture_logs() as logged:
        for _ in range(3):
            scene.run(400)
    [line] = [entry for entry in logged if entry["event"] == "raw partition stopped"]
    assert line["raw_partitions"] == [f"{B} at offset 17"]
    assert (line["code"], line["fix"], line["trace"]) == ("CDC-084", "Make it go.", "a trace")


def test_a_stop_ends_when_the_messages_it_stopped_at_are_folded(scene: Scene) -> None:
    scene.workers.fail(B, Code.UNEXPECTED, (2, 5))
    scene.run(2)
    scene.workers.failing.clear()
    while scene.workers.folded < 4:
        scene.run(2)
        assert scene.codes() == {B: Code.UNEXPECTED}, scene.workers.folded
    scene.run()
    assert scene.codes() == {}


def test_one_topic_that_cannot_be_planned_stops_only_itself(scene: Scene) -> None:
    scene.planner.broken[B.stream] = error(Code.TOPIC_SETTINGS)
    assert scene.run(0.5) == [A, C]
    assert scene.run(0.5) == [A, C]
    assert scene.codes() == {B: Code.TOPIC_SETTINGS}
    assert scene.planner.planned.count(B.stream) == 1  # not in each batch
    assert scene.run(0.5) == [A, C]
    assert scene.planner.planned.count(B.stream) == 2
    scene.planner.broken.clear()
    scene.now += 10
    assert scene.run() == [A, B, C]
    assert scene.codes() == {}


def test_a_topic_whose_plan_is_still_being_made_waits_for_it(scene: Scene) -> None:
    scene.planner.pending = {B.stream}
    assert scene.run() == [A, C]
    assert scene.codes() == {}
    scene.planner.pending = set()
    assert scene.run() == [A, B, C]


def test_a_temporary_error_of_the_plan_makes_the_job_wait(scene: Scene) -> None:
    scene.planner.away = [error(Code.KAFKA_UNREACHABLE)] * 3
    with structlog.testing.capture_logs() as logged:
        assert scene.run() == [A, B, C]
    assert [entry["event"] for entry in logged].count("waiting") == 3


@pytest.mark.parametrize("code", [Code.KAFKA_REFUSED, Code.RAW_MESSAGE_UNREADABLE])
def test_any_other_error_of_the_plan_ends_the_job(scene: Scene, code: Code) -> None:
    scene.planner.away = [error(code)]
    with pytest.raises(CdcError):
        scene.run()


@pytest.mark.parametrize("code", [Code.CONFIG_INVALID, Code.TRANSACTION_TIMEOUT])
def test_a_setting_that_a_worker_finds_wrong_ends_the_job(scene: Scene, code: Code) -> None:
    scene.workers.fail(B, code)
    with pytest.raises(CdcError):
        scene.run()


def test_a_checkpoint_location_that_is_away_for_one_delays_no_other(scene: Scene) -> None:
    scene.workers.fail(B, Code.CHECKPOINT_LOCATION)
    for _ in range(100):
        assert {A, C} <= set(scene.run())
    tries = sum(B in assigned for assigned in scene.workers.assigned)
    assert 10 <= tries <= 15  # after 1, 2, 4, 8, 10, 10, … seconds


def test_a_schema_that_has_just_arrived_is_not_logged(scene: Scene) -> None:
    scene.workers.fail(B, Code.SCHEMA_UNKNOWN)
    with structlog.testing.capture_logs() as logged:
        scene.run(0.1)
        scene.workers.failing.clear()
        assert scene.run(0.1) == [A, B, C]  # without a pause
    assert [entry for entry in logged if entry["event"] != "batch"] == []
    scene.workers.fail(B, Code.SCHEMA_UNKNOWN)
    with structlog.testing.capture_logs() as logged:
        scene.run(0.1)
        scene.run(0.1)
    assert [entry["event"] for entry in logged if entry["event"] != "batch"] == ["raw partition stopped"]


def test_all_stopped_is_no_end(scene: Scene) -> None:
    for failed in (A, B, C):
        scene.workers.fail(failed, Code.STATE_FORMAT)
    with structlog.testing.capture_logs() as logged:
        scene.run(0.1)
    assert scene.run() == []
    [line] = [entry for entry in logged if entry["event"] == "raw partition stopped"]
    assert line["raw_partitions"] == [str(A), str(B), str(C)]  # one line for one reason


def test_a_batch_is_cut_when_the_job_stops(scene: Scene) -> None:
    scene.run()
    assert not scene.workers.is_cut()
    scene.driver._stop.set()
    assert scene.workers.is_cut()


def test_a_batch_is_cut_when_a_try_is_due(scene: Scene) -> None:
    scene.workers.fail(B, Code.STATE_DAMAGED)
    scene.run(0.0)
    scene.run(0.0)
    assert not scene.workers.is_cut()
    scene.now += 1.0
    assert scene.workers.is_cut()


def test_a_batch_is_cut_when_the_plan_has_changed(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_BATCH_SECONDS", 0.0)
    scene.run()
    assert not scene.workers.is_cut()
    scene.planner.errors[TOPICS[1]] = error(Code.REGISTRY_UNREACHABLE)
    assert scene.workers.is_cut()
    scene.planner.errors.clear()
    assert not scene.workers.is_cut()
    scene.planner.away.append(error(Code.KAFKA_UNREACHABLE))
    assert scene.workers.is_cut()
    assert not scene.workers.is_cut()
    monkeypatch.setattr(scene.planner, "plan_batch", lambda: None)
    assert scene.workers.is_cut()


def interrupted() -> SparkInterruptedError:
    return SparkInterruptedError(Code.SPARK_FAILED, "An executor was lost.", "Start it again.")


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkRetries, "next_pause", lambda _: 0.0)


def run_for(scene: Scene, batches: int) -> None:
    left = iter(range(batches - 1))
    scene.driver.run_until_stopped(lambda: None if next(left, None) is not None else scene.driver._stop.set())


@pytest.mark.usefixtures("no_pauses")
def test_spark_is_started_again_after_what_that_heals(scene: Scene) -> None:
    scene.workers.interruptions = [interrupted(), interrupted()]
    scene.workers.restarts = [interrupted(), None]
    with structlog.testing.capture_logs() as logged:
        run_for(scene, 4)
    assert scene.workers.restarted == 3
    assert scene.workers.assigned == [[A, B, C]] * 2
    lines = [entry for entry in logged if entry["event"] == "spark restarts"]
    assert [entry["log_level"] for entry in lines] == ["warning"] * 3
    assert scene.status._counts["spark_restarts"] == 3
    assert scene.status._waiting == ""


def test_a_failure_beyond_the_bound_ends_the_job(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkRetries, "next_pause", lambda _: None)
    scene.workers.interruptions = [interrupted()]
    with pytest.raises(CdcError, match="An executor was lost"):
        run_for(scene, 2)
    assert not scene.workers.restarted


@pytest.mark.usefixtures("no_pauses")
def test_another_failure_of_spark_ends_the_job_at_once(scene: Scene) -> None:
    scene.workers.interruptions = [error(Code.SPARK_FAILED)]
    with pytest.raises(CdcError, match="It does not go"):
        run_for(scene, 2)
    assert not scene.workers.restarted
