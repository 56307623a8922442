"""A worker's loop: what fails for one raw partition or topic does not touch the others, within the same batch."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from cassandra_storage.formats.errors import FormatError
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.raw import is_heartbeat
from materializer.records import RawPartition, RawRecord
from materializer.settings import Settings
from materializer.worker.batch_plan import BatchPlan
from materializer.worker.local_states import LocalStates
from materializer.worker.worker_loop import BatchTask, PollLoop
from stream_runtime.exactly_once.position import Position
from stream_runtime.exactly_once.report import Report
from stream_runtime.kafka.raw_reader import Read
from stream_runtime.records import Share, TopicShape
from stream_runtime.state.unused import DiskUse
from stream_runtime.worker import loop as worker_loop
from stream_runtime.worker.loop import loops
from stream_runtime.worker.task import Assignment, TaskResult, WorkerStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

TOPICS = ("cdc.raw.ks.a", "cdc.raw.ks.b", "cdc.raw.ks.c")
A, B, C = (RawPartition(topic, 0) for topic in TOPICS)
SHAPE = TopicShape(1, "id")
SECRET = "the-value-of-a-row"


class FakeReader:
    """Gives each raw partition one message a read, up to the offset `end`. `trouble`: errors by raw partition; `lost`:
    once.
    """

    def __init__(self) -> None:
        self.reading: dict[RawPartition, int] = {}
        self.trouble: dict[RawPartition, CdcError] = {}
        self.foreign: dict[RawPartition, CdcError] = {}
        self.lost: set[RawPartition] = set()
        self.whole: CdcError | None = None
        self.quiet: list[RawPartition] = []
        self.ends: list[Mapping[RawPartition, int]] = []
        self.end = 1_000_000

    def silent(self) -> list[RawPartition]:
        return self.quiet

    def renew_if_stuck(self, ends: Mapping[RawPartition, int]) -> list[RawPartition]:
        self.ends.append(ends)
        return []

    def positions(self, partitions: Collection[RawPartition]) -> dict[RawPartition, Position | CdcError | None]:
        return {partition: self.foreign.get(partition, Position(10, "v", 1)) for partition in partitions}

    def add(self, offsets: Mapping[RawPartition, int]) -> None:
        self.reading |= offsets

    def remove(self, partitions: Iterable[RawPartition]) -> None:
        for partition in partitions:
            self.reading.pop(partition, None)

    def read(self, _budget: object, _seconds: float) -> Read:
        if self.whole is not None:
            raise self.whole
        records: dict[RawPartition, list[RawRecord]] = {}
        for partition, offset in self.reading.items():
            if offset >= self.end:
                continue
            records[partition] = [RawRecord(b"k", b"v", offset, 1)]
            self.reading[partition] += 1
        lost, self.lost = self.lost & self.reading.keys(), set()
        return Read(
            records, lost, {partition: error for partition, error in self.trouble.items() if partition in self.reading}
        )


class FakeTopics:
    def __init__(self) -> None:
        self.shapes: dict[str, TopicShape | CdcError] = dict.fromkeys(TOPICS, SHAPE)
        self.unreachable: CdcError | None = None
        self.described: list[set[str]] = []

    def each_shape(self, topics: Collection[str]) -> dict[str, TopicShape | CdcError]:
        if topics:
            self.described.append(set(topics))
        return {topic: self.shapes[topic] for topic in topics}

    def bounds(self, partitions: Collection[RawPartition]) -> dict[RawPartition, tuple[int, int]]:
        return dict.fromkeys(partitions, (50, 60))

    def ends(self, partitions: Collection[RawPartition]) -> dict[RawPartition, int]:
        if self.unreachable is not None:
            raise self.unreachable
        return dict.fromkeys(partitions, 7)


class FakeOpenPartitions:
    """`broken`: what a fold of the raw partition raises. `slow`: a part of its first message is folded each time."""

    def __init__(self) -> None:
        self.broken: dict[RawPartition, BaseException] = {}
        self.closed: list[RawPartition] = []
        self.given: dict[RawPartition, list[int]] = {}
        self.slow: set[RawPartition] = set()

    def process(
        self, _plan: BatchPlan, raw_partition: RawPartition, records: Sequence[RawRecord], _end: float
    ) -> Report:
        if raw_partition in self.broken:
            raise self.broken[raw_partition]
        self.given.setdefault(raw_partition, []).append(records[0].offset)
        if raw_partition in self.slow:
            time.sleep(0.02)
            return Report(records[0].offset, records[0].offset, 0, 0, 1, 0.0, left=len(records))
        return Report(records[0].offset, records[-1].offset + 1, len(records), 0, 1, 0.0)

    def close(self, raw_partition: RawPartition) -> None:
        self.closed.append(raw_partition)

    def close_all(self) -> None: ...


class FakeRestores:
    """Restores end at once, except those in `slow`. `broken`: what the restore of a raw partition raises."""

    def __init__(self) -> None:
        self.slow: dict[RawPartition, threading.Event] = {}
        self.broken: dict[RawPartition, Exception] = {}
        self.made: list[RawPartition] = []

    def __call__(self, _plan: BatchPlan, raw_partition: RawPartition, _version: str) -> None:
        self.made.append(raw_partition)
        if raw_partition in self.slow:
            self.slow[raw_partition].wait(10)
        if raw_partition in self.broken:
            raise self.broken[raw_partition]


def assigned(*raw_partitions: RawPartition, messages: int = 1000, seconds: float = 0.0) -> Assignment:
    return Assignment(tuple(map(Share.of, raw_partitions)), messages, seconds)


class Scene:
    def __init__(self) -> None:
        self.reader, self.topics, self.open = FakeReader(), FakeTopics(), FakeOpenPartitions()
        self.restores = FakeRestores()
        settings = Settings()
        states = LocalStates(self.restores, lambda _settings, _own: DiskUse("here", 1, 2, 3))
        parts: Any = (self.reader, self.topics, self.open, states)
        self.loop = PollLoop(settings.materializer, *parts)
        self.plan = BatchPlan({}, settings.kafka, settings.materializer, dict.fromkeys(TOPICS, SHAPE))

    def run(self, *raw_partitions: RawPartition, seconds: float = 0.02) -> dict[RawPartition, TaskResult]:
        assignment = assigned(*(raw_partitions or (A, B, C)), seconds=seconds)
        return {result.share.partition: result for result in self.loop.run_batch(self.plan, assignment)}

    def check_others_go_on(self, *failed: RawPartition) -> dict[RawPartition, TaskResult]:
        """The batch goes on for its whole time with the others."""
        begun = time.monotonic()
        results = self.run(seconds=0.5)
        assert time.monotonic() - begun >= 0.5, "the batch has ended early"
        assert {partition for partition, result in results.items() if result.error is not None} == set(failed)
        for partition in {A, B, C} - set(failed):
            report = results[partition].report
            assert report is not None
            assert report.messages == self.reader.reading[partition] - 10 > 0
        assert not self.reader.reading.keys() & set(failed)
        assert set(failed) <= set(self.open.closed)
        return results


@pytest.fixture
def scene() -> Scene:
    assert not is_heartbeat(b"v")
    return Scene()


def error(code: Code) -> CdcError:
    return CdcError(code, "It does not go.", "Make it go.")


def code_of(result: TaskResult) -> Code:
    assert result.error is not None
    return result.error.code


def test_an_error_of_one_fold(scene: Scene) -> None:
    scene.open.broken[B] = error(Code.MESSAGE_TOO_LARGE)
    result = scene.check_others_go_on(B)[B]
    assert result.offsets == (10, 11)
    scene.open.broken.clear()
    assert scene.run(A, B, C)[B].error is None  # from its committed position on


def test_silent_raw_partitions_are_looked_at_and_stop_nothing(scene: Scene) -> None:
    scene.run()
    assert scene.reader.ends == []
    scene.reader.quiet = [B]
    for unreachable in (None, error(Code.KAFKA_UNREACHABLE)):
        scene.topics.unreachable = unreachable
        results = scene.run()
        assert results.keys() == {A, B, C}
        assert not [result.error for result in results.values() if result.error is not None]
        assert scene.reader.ends[-1] == {B: 7}


def read_bad_byte() -> None:
    raise FormatError("a bad byte", position=7)


def fold_badly() -> None:
    try:
        read_bad_byte()
    except FormatError as cause:
        raise KeyError(SECRET) from cause


def unexpected_error() -> Exception:
    with pytest.raises(KeyError) as raised:
        fold_badly()
    return raised.value


def test_an_unexpected_exception_of_one_fold(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.open.broken[B] = unexpected_error()
    result = scene.check_others_go_on(B)[B]
    assert result.error is not None
    assert result.error.code is Code.UNEXPECTED
    assert "KeyError" in result.error.problem
    assert str(B) in result.error.problem
    assert "FormatError: a bad byte (position 7)" in result.trace
    assert "test_worker_loop.py" in result.trace
    scene.run()
    said = capsys.readouterr().out
    assert said.count("raw partition stopped") == 1  # the same exception is not logged again
    assert SECRET not in result.error.problem + result.trace + said


def test_an_error_of_kafka_in_one_fold(scene: Scene) -> None:
    scene.open.broken[B] = KafkaException(KafkaError(KafkaError._FENCED))
    scene.open.broken[C] = KafkaException(KafkaError(KafkaError._TRANSPORT))
    results = scene.check_others_go_on(B, C)
    assert (code_of(results[B]), code_of(results[C])) == (Code.KAFKA_REFUSED, Code.KAFKA_UNREACHABLE)


def test_what_was_folded_before_the_error_counts(scene: Scene) -> None:
    scene.run(A, B, C, seconds=0)
    scene.loop._results = {}
    scene.loop.poll_and_process(scene.plan, assigned(A, B, C, seconds=0))
    scene.open.broken[B] = error(Code.STATE_DAMAGED)
    scene.loop.poll_and_process(scene.plan, assigned(A, B, C, seconds=0))
    result = scene.loop._results[Share.of(B)]
    assert result.report is not None
    assert (result.report.messages, result.error is None) == (1, False)


def test_a_position_that_cannot_be_read(scene: Scene) -> None:
    scene.reader.foreign[B] = error(Code.STATE_MISMATCH)
    scene.check_others_go_on(B)


def test_a_topic_that_has_changed(scene: Scene) -> None:
    scene.topics.shapes[B.topic] = TopicShape(2, "id")
    scene.topics.shapes[C.topic] = error(Code.KAFKA_REFUSED)
    results = scene.check_others_go_on(B, C)
    assert code_of(results[B]) is Code.RAW_PARTITIONS_CHANGED
    assert results[B].report is None  # not one message is folded


def test_a_raw_partition_that_cannot_be_read_and_one_with_lost_messages(scene: Scene) -> None:
    scene.reader.trouble[B] = error(Code.KAFKA_REFUSED)
    scene.reader.lost = {C}
    results = scene.check_others_go_on(B, C)
    assert code_of(results[C]) is Code.RAW_SKIPPED


def test_a_consumer_that_cannot_read_at_all_stops_all_of_its_own(scene: Scene) -> None:
    scene.reader.whole = error(Code.KAFKA_REFUSED)
    assert {partition for partition, result in scene.run().items() if result.error is not None} == {A, B, C}


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_the_end_of_the_process_is_no_error_of_a_raw_partition(scene: Scene, end: type[BaseException]) -> None:
    scene.open.broken[B] = end()
    with pytest.raises(end):
        scene.run()


def test_an_error_of_the_loop_itself_is_sparks_and_another_try_begins_with_a_new_loop(scene: Scene) -> None:
    key = scene.plan.kafka, scene.plan.materializer.group_id
    closed = []
    broken: Any = type("Broken", (), {"run_batch": None, "close": lambda _: closed.append(1)})()
    loops[key] = broken
    with pytest.raises(TypeError):
        BatchTask(scene.plan)(assigned(A, messages=1, seconds=0.0))
    assert (closed, key in loops) == ([1], False)


def test_only_the_raw_partition_whose_state_is_fetched_waits() -> None:
    scene = Scene()
    over = scene.restores.slow[A] = threading.Event()
    for _ in range(3):
        others = Neighbours(0)
        found = scene.loop.run_batch(scene.plan, assigned(A, B, C, seconds=0.0), others)
        assert {result.share.partition for result in found} == {B, C}
        assert others.received == [WorkerStatus(is_restoring=True)]
        assert A not in scene.reader.reading
    over.set()
    while A not in (results := scene.run(seconds=0.05)):
        assert {B, C} <= results.keys()
    others = Neighbours(0)
    scene.loop.run_batch(scene.plan, assigned(A, B, seconds=0.0), others)
    assert others.received == [WorkerStatus()]
    assert sorted(scene.restores.made) == [A, B, C]


@pytest.mark.parametrize("error", [CdcError(Code.STATE_DAMAGED, "It is torn.", "Mend it."), RuntimeError(SECRET)])
def test_a_state_that_cannot_be_fetched_stops_its_raw_partition(error: Exception) -> None:
    scene = Scene()
    scene.restores.broken[B] = error
    results = scene.run()
    assert results.keys() == {A, B, C}
    failed = results[B].error
    assert failed is not None
    assert failed.code is (Code.STATE_DAMAGED if isinstance(error, CdcError) else Code.UNEXPECTED)
    assert SECRET not in str(failed)
    del scene.restores.broken[B]
    assert scene.run()[B].error is None


def test_a_raw_partition_that_moves_away_while_its_state_is_fetched_is_not_folded() -> None:
    scene = Scene()
    over = scene.restores.slow[A] = threading.Event()
    scene.run()
    scene.run(B, C)
    over.set()
    assert scene.run(B, C).keys() == {B, C}
    assert A not in scene.reader.reading
    assert A in scene.run(seconds=0.2)


def test_a_state_that_came_after_its_raw_partition_had_moved_away_counts_for_nothing_when_it_is_back() -> None:
    """It may be old or deleted by then: fetching it within the fold would stop all others."""
    scene = Scene()
    over = scene.restores.slow[A] = threading.Event()
    scene.run()
    scene.run(B, C)
    over.set()
    for _ in range(3):
        scene.run(B, C)
    while A not in scene.run():
        time.sleep(0.01)
    assert scene.restores.made.count(A) == 2


def test_one_report_says_what_the_states_take_on_the_machine() -> None:
    scene = Scene()
    found = [result.report.state.disk for _ in range(5) for result in scene.run().values() if result.report is not None]
    assert [disk for disk in found if disk is not None] == [DiskUse("here", 1, 2, 3)]


class Neighbours:
    """MayGoOn: others need so many more questions. `received`: what they were asked with."""

    def __init__(self, questions: int) -> None:
        self._questions = questions
        self.received: list[WorkerStatus] = []

    def __call__(self, status: WorkerStatus) -> bool:
        self.received.append(status)
        return len(self.received) <= self._questions


def test_it_folds_on_while_others_need_longer(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_loop, "_ASK_SECONDS", 0.0)
    others = Neighbours(3)
    results = scene.loop.run_batch(scene.plan, assigned(A, seconds=0.0), others)
    assert others.received == [WorkerStatus()] * 4
    assert [result.report and result.report.messages for result in results] == [4]


def test_a_failure_is_told_at_once(scene: Scene) -> None:
    scene.open.broken[A] = error(Code.SCHEMA_UNKNOWN)
    others = Neighbours(0)
    scene.loop.run_batch(scene.plan, assigned(A, B, seconds=0.0), others)
    assert others.received == [WorkerStatus(has_failed=True)]


def test_what_is_left_of_a_wide_change_is_folded_first_the_next_time_and_others_have_their_turn(scene: Scene) -> None:
    scene.open.slow.add(A)
    others = Neighbours(0)
    for _ in range(2):
        scene.loop.run_batch(scene.plan, assigned(A, B, C, seconds=0.1), others)
    assert len(scene.open.given[A]) >= 2
    assert set(scene.open.given[A]) == {10}
    assert scene.open.given[B] == sorted(set(scene.open.given[B]))
    assert len(scene.open.given[B]) >= 2
    assert others.received == [WorkerStatus()] * 2  # one raw partition alone can go to no other worker
    scene.open.slow.clear()
    scene.run()
    assert scene.open.given[A][-1] > 10


def test_topics_are_described_once_for_the_messages_that_were_read(scene: Scene) -> None:
    scene.reader.end = 11
    scene.open.slow.add(A)
    scene.run(A, B, seconds=0.2)
    assert len(scene.open.given[A]) >= 3  # the parts of its one message
    assert scene.topics.described == [{A.topic, B.topic}]
    scene.reader.end = 12
    scene.run(A, B)
    assert scene.topics.described[1:] == [{A.topic, B.topic}]
