"""The driver's service for rounds, over real connections."""

from __future__ import annotations

import os
import socket
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from typing import TYPE_CHECKING, Any

import pytest

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.exactly_once.report import NOTHING_DONE, Report
from stream_runtime.query import data_source
from stream_runtime.query import rounds as rounds_module
from stream_runtime.query.data_source import RoundReader, Slot, reports
from stream_runtime.query.rounds import Rounds
from stream_runtime.worker.task import Assignment, TaskResult, WorkerStatus
from tests.support.stream_runtime.shares import share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_runtime.worker.task import MayGoOn

LOCALHOST = "127.0.0.1"
_TCP_REPAIR = 19  # Linux
RAW = share("cdc.raw.shop.orders", 0)
ASSIGNMENTS = {"worker-1": Assignment((RAW,), 100, 0.0)}


class Fold:
    """Instead of a BatchTask: folds three messages of each raw partition. `failures`: how often it fails before."""

    failures = 0

    def __init__(self, end: int = 3) -> None:
        self.end = end

    def __call__(self, assignment: Assignment, _may_go_on: MayGoOn) -> list[TaskResult]:
        if Fold.failures:
            Fold.failures -= 1
            raise ValueError("a defect")
        report = Report(0, self.end, 3, 2, 1, 0.1)
        return [TaskResult(raw_partition, report, None) for raw_partition in assignment.shares]


@pytest.fixture
def rounds() -> Iterator[Rounds]:
    made = Rounds(LOCALHOST, LOCALHOST)
    yield made
    made.close()
    for connection in data_source._connections.values():
        connection.close()
    data_source._connections.clear()
    data_source._tasks.clear()


@contextmanager
def running(rounds: Rounds, task: Fold | None = None) -> Iterator[Future[list[TaskResult]]]:
    """A round that waits for its results in a thread of its own."""
    rounds.list_workers(1)
    run: Any = rounds.run
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(run, task or Fold(), ASSIGNMENTS, lambda: None)


class Row:
    def __init__(self, report: bytes | None) -> None:
        self.report = report


def read(reader: RoundReader, slot: Slot) -> list[Row]:
    """The rows that Spark gets."""
    return [Row(value.as_py()) for batch in reader.read(slot) for value in batch.column(0)]


def test_a_round_from_its_offset_to_its_results(rounds: Rounds) -> None:
    reader = RoundReader(rounds.address)
    with running(rounds) as results:
        offset = reader.latestOffset()
        assert offset == {"round": 1, "positions": {}}
        [slot] = reader.partitions(reader.initialOffset(), offset)
        rows = read(reader, slot)
        assert len(rows) == 3  # one for each message
        rounds.deliver(reports([row for row in rows if row.report is not None]))
        assert [result.share for result in results.result(10)] == [RAW]
    with running(rounds) as results:
        offset = reader.latestOffset()
        assert offset == {"round": 2, "positions": {RAW.stream: {"0": 3}}}
        reader.partitions({}, offset)
        rounds.deliver([])
        assert results.result(10) == []


def test_what_is_read_twice_is_folded_once(rounds: Rounds) -> None:
    """Spark reads again for a second action on a micro-batch, and for a task that it thinks lost."""
    reader = RoundReader(rounds.address)
    with running(rounds) as results:
        [slot] = reader.partitions({}, reader.latestOffset())
        assert read(reader, slot)
        assert read(reader, slot) == []
        rounds.deliver([])
        results.result(10)
    assert read(reader, slot) == []  # the round is over


def test_a_task_that_fails_may_be_run_again_in_its_process(rounds: Rounds) -> None:
    reader = RoundReader(rounds.address)
    with running(rounds) as results:
        [slot] = reader.partitions({}, reader.latestOffset())
        Fold.failures = 1
        with pytest.raises(ValueError, match="a defect"):
            read(reader, slot)
        assert len(read(reader, slot)) == 3
        rounds.deliver([])
        results.result(10)


def test_a_process_gets_a_changed_task_and_keeps_an_unchanged_one(rounds: Rounds) -> None:
    reader = RoundReader(rounds.address)
    ends = []
    for task in (Fold(3), Fold(3), Fold(6)):
        with running(rounds, task) as results:
            [slot] = reader.partitions({}, reader.latestOffset())
            found = reports([row for row in read(reader, slot) if row.report is not None])
            rounds.deliver(found)
            assert found[0].report is not None
            ends.append(found[0].report.end)
            results.result(10)
    assert ends == [3, 3, 6]
    assert rounds._task_version == 2


def test_results_of_a_micro_batch_without_a_round_count_for_nothing(rounds: Rounds) -> None:
    """Spark's planner process may die and start again: then it plans a round that is over."""
    reader = RoundReader(rounds.address)
    with running(rounds) as results:
        RoundReader(rounds.address).partitions({}, {"round": 0})
        rounds.deliver([])
        assert not results.done()
        reader.partitions({}, reader.latestOffset())
        rounds.deliver([])
        assert results.result(10) == []


def test_a_query_that_has_ended_ends_the_round(rounds: Rounds) -> None:
    ended = CdcError(Code.SPARK_FAILED, "The query has ended.", "Start it again.")

    def check() -> None:
        raise ended

    rounds.list_workers(1)
    with pytest.raises(CdcError, match="has ended"):
        rounds.run(Fold(), ASSIGNMENTS, check)


def test_who_does_not_know_the_key_learns_nothing(rounds: Rounds) -> None:
    with pytest.raises(AuthenticationError):
        Client((rounds.address.host, rounds.address.port), authkey=b"another key")


def test_a_connection_that_says_nothing_keeps_nobody_waiting(rounds: Rounds) -> None:
    silent = Client((rounds.address.host, rounds.address.port))
    reader = RoundReader(rounds.address)
    asked = threading.Thread(target=reader.partitions, args=({}, {"round": 1}))
    asked.start()
    asked.join(5)
    assert not asked.is_alive()
    silent.close()


class Process:
    """Another process of Spark's, which asks the driver itself."""

    def __init__(self, rounds: Rounds) -> None:
        host, port, key = rounds.address
        self._connection = Client((host, port), authkey=key)

    def ask(self, *question: object) -> Any:  # noqa: ANN401  the question's answer
        self._connection.send(question)
        assert self._connection.poll(10)
        return self._connection.recv()

    def claim(self, number: int) -> Assignment | None:
        assignment: Assignment | None = self.ask("claim", number, 0)[0]
        return assignment

    def is_to_go_on(self, number: int, **standing: bool) -> bool:
        return bool(self.ask("over", number, WorkerStatus(**standing)))

    def end(self) -> None:
        self._connection.close()

    def vanish(self) -> None:
        """As a machine without power: nothing says that the connection has ended."""
        time.sleep(0.2)  # until it has confirmed all that has come
        with socket.socket(fileno=os.dup(self._connection.fileno())) as connection:
            try:
                connection.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, 1)
            except PermissionError:
                pytest.skip("only root may close a connection silently")
        self.end()


class Two:
    """Rounds of two workers, each with a raw partition, in a thread of their own; and what was asked of them."""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds
        self.is_cut = False
        self.number = 0
        self.a, self.b = Process(rounds), Process(rounds)
        self.begin()

    def begin(self, seconds: float = 0.0) -> None:
        names = self.rounds.list_workers(2)
        assignments = {
            name: Assignment((share(RAW.stream, partition),), 9, 1.0) for partition, name in enumerate(names)
        }
        task: Any = Fold()
        self._results: Future[list[TaskResult]] = Future()

        def run() -> None:
            self._results.set_result(self.rounds.run(task, assignments, lambda: None, seconds, lambda: self.is_cut))

        threading.Thread(target=run, daemon=True).start()
        self.number, _ = self.a.ask("next", self.number)
        assert self.a.ask("plan", self.number) == self.a.ask("plan", self.number) == 2  # Spark may plan twice

    def settle(self, seconds: float) -> None:
        """A round that both have claimed, and then one that lasts so long."""
        assert self.a.claim(self.number)
        assert self.b.claim(self.number)
        self.end()
        self.begin(seconds)

    def end(self, *results: TaskResult) -> list[TaskResult]:
        self.rounds.deliver(results)
        return self._results.result(10)


def test_a_process_whose_time_is_over_folds_on_until_the_slowest_one_has_ended(rounds: Rounds) -> None:
    two = Two(rounds)
    assert two.a.claim(two.number)
    assert two.b.claim(two.number)
    assert two.a.is_to_go_on(two.number)
    assert two.a.is_to_go_on(two.number)
    assert not two.b.is_to_go_on(two.number)
    assert not two.a.is_to_go_on(two.number)
    two.end()
    assert not two.a.is_to_go_on(two.number)


def test_a_process_that_dies_keeps_no_other_one_in_the_round(rounds: Rounds) -> None:
    two = Two(rounds)
    assert two.a.claim(two.number)
    assert two.b.claim(two.number)
    assert two.a.is_to_go_on(two.number)
    two.b.end()
    deadline = time.monotonic() + 10
    while two.a.is_to_go_on(two.number):
        assert time.monotonic() < deadline
    two.end()


def test_a_process_whose_machine_has_vanished_keeps_no_other_one_in_the_round(
    rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the others hold all cores, and Spark has none for the task that the lost machine had."""
    monkeypatch.setattr(rounds_module, "_PROBE_SECONDS", 1)
    two = Two(rounds)
    assert two.a.claim(two.number)
    assert two.b.claim(two.number)
    two.b.vanish()
    deadline = time.monotonic() + 10
    while two.a.is_to_go_on(two.number):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    two.end()


def test_a_round_that_is_cut_ends_and_a_late_process_makes_it_no_longer(rounds: Rounds) -> None:
    two = Two(rounds)
    two.settle(1000.0)
    assert two.a.claim(two.number)
    assert two.a.is_to_go_on(two.number)
    two.is_cut = True
    deadline = time.monotonic() + 10
    while two.a.is_to_go_on(two.number):
        assert time.monotonic() < deadline
    late = two.b.claim(two.number)
    assert late is not None
    assert late.seconds == 0
    two.end()


def test_a_failure_ends_a_long_round_and_messages_that_are_left_show(rounds: Rounds) -> None:
    two = Two(rounds)
    two.settle(1000.0)
    assert two.a.claim(two.number)
    assert two.a.is_to_go_on(two.number, is_behind=True)
    assert rounds.is_behind
    assert not two.a.is_to_go_on(two.number, has_failed=True)
    assert two.end(TaskResult(RAW, Report(0, 3, 3, 0, 1, 0.25), None))
    assert 0 < rounds.load <= 0.5


def test_a_process_that_restores_is_busy(rounds: Rounds) -> None:
    two = Two(rounds)
    two.settle(1000.0)
    for process in (two.a, two.b):
        assert process.claim(two.number)
        assert process.is_to_go_on(two.number, is_restoring=True)
    assert two.b.is_to_go_on(two.number)  # its state has come
    assert two.end() == []
    assert rounds.load == 1
    two.begin(1000.0)
    two.end()
    assert rounds.load == 0


def test_a_round_is_short_while_a_worker_has_no_process(rounds: Rounds) -> None:
    two = Two(rounds)
    two.end()
    two.begin(1000.0)
    assert two.a.claim(two.number)
    assert not two.a.is_to_go_on(two.number)
    two.end()


def test_a_process_without_a_share_ends_a_long_round(rounds: Rounds) -> None:
    two = Two(rounds)
    two.settle(1000.0)
    for process in (two.a, two.b):
        assert process.claim(two.number)
        assert process.is_to_go_on(two.number)
    assert Process(rounds).claim(two.number) is None
    assert not two.a.is_to_go_on(two.number)
    two.end()


def test_positions_are_those_of_what_was_folded(rounds: Rounds) -> None:
    two = Two(rounds)
    two.end(TaskResult(RAW, Report(0, 3, 3, 0, 1, 0.25), None))
    second = Two(rounds)
    second.end(TaskResult(RAW, NOTHING_DONE, None))
    assert rounds._positions == {RAW.stream: {"0": 3}}


def test_no_round_is_planned_any_more_once_it_is_closed_and_spark_has_asked(rounds: Rounds) -> None:
    assert not rounds.wait_until_idle(0)
    asks = Process(rounds)
    rounds.close()
    assert not rounds.wait_until_idle(0.05)
    assert asks.ask("next", 0) == (0, {})
    assert rounds.wait_until_idle(0)


def test_it_listens_on_the_drivers_address_alone(rounds: Rounds) -> None:
    assert rounds._listener.address[0] == LOCALHOST
