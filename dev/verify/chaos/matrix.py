"""The kill matrix of one raw partition's protocol: every fault point, hurt in every way, on a real broker.

Each cell runs the trivial fold (tests/support/materializer/counting.py) over a raw partition of its own, in processes
of its own; in the end each raw message has come out once and in order, and the stored state alone is enough.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_common.errors.codes import Code
from dev.verify.chaos.child import Child, Runs, census, start
from stream_runtime.fault_points import Fault, FaultPoint, Point
from tests.support.materializer.counting import CHANGE_PARTITIONS
from tests.support.materializer.protocol_run import Setup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

MESSAGES = 240
KEYS = 17
TRANSACTION_TIMEOUT_MS = 1500
ZOMBIE_TIMEOUT_MS = 30_000
# How the broker or the client tells a producer that its transaction is over.
OVER = ("FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE", "NotOwnerError", "message(s) timed out")
# A successor deletes the changelogs that a worker was about to restore. The worker no longer owns the partition, and no
# driver waits for its error.
RESTORING = {FaultPoint.IN_FETCH, FaultPoint.BEFORE_RESTORE_SWAP, FaultPoint.IN_RESTORE_SWAP}
CLEANED = (Code.STATE_DAMAGED.text,)


Defect: TypeAlias = "Callable[[], None] | None"


class Action(Enum):
    """The action at a point; the value describes it."""

    KILL = "kill -9 of the worker"
    RAISE = "the task fails and runs again in the same worker"
    ZOMBIE = "SIGSTOP; the worker comes back after its successor has finished"
    SLEEPER = "SIGSTOP for longer than the transaction's timeout"


class Cell(NamedTuple):
    """One cell of the matrix."""

    # The fault point.
    point: Point
    # The action at the point.
    action: Action
    # The time at which the point is reached that counts: 1 is the first.
    nth: int
    # The name of one of SCENARIOS.
    scenario: str

    def __str__(self) -> str:
        return f"{self.point.name}/{self.action.name} (time {self.nth}, {self.scenario})"


class Outcome(NamedTuple):
    """The outcome of a cell."""

    # The cell.
    cell: Cell
    # The message that was lost, doubled or damaged, in words; "" if there is none.
    problem: str
    # The time that it took, in s.
    seconds: float
    # How often the run reached the point, if that was not often enough and nothing is judged; otherwise 0.
    reached: int = 0


class NotReachedError(AssertionError):
    """The run reached the cell's point fewer times than the run that was counted: a state's number of files depends on
    when it was stored.
    """

    def __init__(self, cell: Cell, times: int) -> None:
        super().__init__(f"{cell.point.name} was reached {times} times, not {cell.nth}")
        self.times = times


def fresh(_setup: Setup) -> None:
    """The partition has never been read."""


def restored(setup: Setup) -> None:
    """The worker has lost its local state, and snapshot and changelogs are there."""
    finish(setup, until=150)
    shutil.rmtree(setup.state)


SCENARIOS: Mapping[str, Callable[[Setup], None]] = {"fresh": fresh, "restored": restored}


def make_setup(bootstrap: str, prefix: str, folder: Path, messages: int = MESSAGES, location: str = "") -> Setup:
    """A raw partition with so many messages, and its change topic."""
    folder.mkdir(parents=True, exist_ok=True)
    setup = Setup(bootstrap, prefix, str(folder), location)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(setup.raw.topic, 1, 1), NewTopic(setup.changes, CHANGE_PARTITIONS, 1)]
    for future in admin.create_topics(topics).values():
        future.result()
    produce(setup, messages)
    return setup


def produce(setup: Setup, count: int) -> None:
    producer = Producer({"bootstrap.servers": setup.bootstrap, "linger.ms": 5})
    for number in range(count):
        producer.produce(setup.raw.topic, b"v%d" % number, b"k%d" % (number % KEYS), 0)
    producer.flush()


def finish(setup: Runs, until: int | None = None, defect: Defect = None) -> None:
    """Run to the end, which nothing keeps from it."""
    child = start(setup, until=until, prepare=defect)
    assert child.wait() == 0, child.output()


def reached(make: Callable[[], Setup]) -> dict[str, dict[Point, int]]:
    """Return how often each point is reached in each scenario."""
    found = {}
    for name, prepare in SCENARIOS.items():
        setup = make()
        prepare(setup)
        found[name] = census(setup)
    return found


def cells(found: Mapping[str, Mapping[Point, int]], seed: int, points: Iterable[Point] = FaultPoint) -> Iterator[Cell]:
    """Every point with every action, at a time that the seed chooses; AssertionError for one that no run reaches."""
    points = list(points)
    missed = [point.name for point in points if not any(point in counts for counts in found.values())]
    assert not missed, f"no scenario reaches {missed}"
    for point in points:
        for action in Action:
            chance = random.Random(f"{seed}/{point.name}/{action.name}")
            scenario = next(name for name, counts in found.items() if point in counts)
            yield Cell(point, action, chance.randint(1, found[scenario][point]), scenario)


def run_cell(setup: Setup, cell: Cell, defect: Defect = None) -> Outcome:
    """Hurt the run at the cell's point, finish it, and look at what came out; `defect` seeds one in each process."""
    return judge(cell, partial(_run_cell, setup, cell, defect))


def _run_cell(setup: Setup, cell: Cell, defect: Defect) -> None:
    SCENARIOS[cell.scenario](setup)
    hurt_and_finish(setup, cell, defect)
    setup.check()
    check_stored(setup, defect)


def judge(cell: Cell, run: Callable[[], None]) -> Outcome:
    """Run a cell; AssertionErrors of `run` are its problem."""
    began = time.monotonic()
    try:
        run()
    except NotReachedError as error:
        return Outcome(cell, str(error), time.monotonic() - began, error.times)
    except AssertionError as error:
        return Outcome(cell, str(error) or "what came out differs", time.monotonic() - began)
    return Outcome(cell, "", time.monotonic() - began)


def hurt_and_finish(setup: Runs, cell: Cell, defect: Defect = None) -> None:
    """Hurt the run at the cell's point, and finish it."""
    _HURT[cell.action](setup, cell, defect)
    finish(setup, defect=defect)


def check_stored(setup: Setup, defect: Defect = None) -> None:
    """A worker that has nothing goes on from what is stored."""
    shutil.rmtree(setup.state)
    produce(setup, KEYS)
    finish(setup, defect=defect)
    setup.check()


def _kill(setup: Runs, cell: Cell, defect: Defect) -> None:
    child = start(setup, Fault(cell.point, cell.nth, "kill"), prepare=defect)
    status = child.wait()
    _check_reached(child, cell)
    assert status == -signal.SIGKILL, child.output()


def _raise(setup: Runs, cell: Cell, defect: Defect) -> None:
    child = start(setup, Fault(cell.point, cell.nth, "raise"), prepare=defect)
    assert child.wait() == 0, child.output()
    _check_reached(child, cell)
    assert f"raised {cell.point.name}" in child.output()


def _zombie(setup: Runs, cell: Cell, defect: Defect) -> None:
    child = _stopped(setup, cell, defect)
    finish(setup, defect=defect)  # its successor, in the next slot
    _resume(child, CLEANED if cell.point in RESTORING else ())


def _sleeper(setup: Runs, cell: Cell, defect: Defect) -> None:
    child = _stopped(setup, cell, defect, TRANSACTION_TIMEOUT_MS)
    time.sleep(TRANSACTION_TIMEOUT_MS / 1000 + 1)
    _resume(child)


def _stopped(setup: Runs, cell: Cell, defect: Defect, timeout_ms: int = ZOMBIE_TIMEOUT_MS) -> Child:
    client = {"transaction.timeout.ms": timeout_ms}
    child = start(setup, Fault(cell.point, cell.nth, "stop"), client=client, prepare=defect)
    child.wait_until_stopped_or_ended()
    _check_reached(child, cell)
    child.wait_until_stopped()
    return child


def _check_reached(child: Child, cell: Cell) -> None:
    """Nothing to check in a process that was killed or is stopped."""
    times = child.reached().get(cell.point, 0)
    if 0 < times < cell.nth:
        raise NotReachedError(cell, times)


def _resume(child: Child, also: Iterable[str] = ()) -> None:
    """It ends well if there was nothing left to commit, or because its transaction is over, or for one of `also`; never
    in another way.
    """
    os.kill(child.pid, signal.SIGCONT)
    if child.wait():
        assert any(word in child.output() for word in (*OVER, *also)), child.output()


_HURT: Mapping[Action, Callable[[Runs, Cell, Defect], None]] = {
    Action.KILL: _kill,
    Action.RAISE: _raise,
    Action.ZOMBIE: _zombie,
    Action.SLEEPER: _sleeper,
}
