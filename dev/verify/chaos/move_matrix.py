"""The kill matrix of a move to another change topic: every fault point that it passes, hurt in every way.

Kafka is real. Each cell folds a table's rows in processes of its own, while the plan begins to name another topic. In
the end the rows have left the first topic, each once, the next topic shows them, and the chain of each key over both is
unbroken.
"""

from __future__ import annotations

import shutil
import signal
from functools import partial
from typing import TYPE_CHECKING

from dev.verify.chaos.child import census, start
from dev.verify.chaos.matrix import Cell, Outcome, cells, finish, hurt_and_finish, judge
from stream_runtime.fault_points import Fault, FaultPoint
from tests.support.materializer.move_run import AFTER, BEFORE, LATER, MoveSetup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from dev.verify.chaos.matrix import Defect
    from stream_runtime.fault_points import Point

_PARTS_DONE = 5  # of about twelve


def move(setup: MoveSetup) -> MoveSetup:
    """The first topic has the rows, and the plan names the next one."""
    setup.send(*BEFORE)
    finish(setup)
    setup.send(*AFTER)
    return setup._replace(has_moved=True)


def restored_in_move(setup: MoveSetup) -> MoveSetup:
    """Begin a move as `move` does, then kill the worker when some rows have moved, and delete its local state."""
    moving = move(setup)
    child = start(moving, Fault(FaultPoint.AFTER_PART, _PARTS_DONE, "kill"))
    assert child.wait() == -signal.SIGKILL, child.output()
    shutil.rmtree(moving.state)
    return moving


MOVES: Mapping[str, Callable[[MoveSetup], MoveSetup]] = {"move": move, "restored in the move": restored_in_move}


def make_move_setup(bootstrap: str, prefix: str, folder: Path) -> MoveSetup:
    setup = MoveSetup(bootstrap, prefix, str(folder))
    setup.make()
    return setup


def reached_in_move(make: Callable[[], MoveSetup]) -> dict[str, dict[Point, int]]:
    """Return how often each point is reached from the moment on at which the plan names the next topic."""
    return {name: census(prepare(make())) for name, prepare in MOVES.items()}


def move_cells(found: Mapping[str, Mapping[Point, int]], seed: int) -> Iterator[Cell]:
    """Yield the cells of all points of a task, except the first point of a new raw partition. See matrix.cells."""
    return cells(found, seed, [point for point in FaultPoint if point is not FaultPoint.AFTER_ADOPT])


def run_move_cell(setup: MoveSetup, cell: Cell, defect: Defect = None) -> Outcome:
    """Run one cell of the move matrix, as matrix.run_cell does."""
    return judge(cell, partial(_run_move_cell, setup, cell, defect))


def _run_move_cell(setup: MoveSetup, cell: Cell, defect: Defect) -> None:
    moving = MOVES[cell.scenario](setup)
    hurt_and_finish(moving, cell, defect)
    moving.check(*BEFORE, *AFTER)
    shutil.rmtree(moving.state)  # a worker that has nothing goes on from what is stored
    moving.send(*LATER)
    finish(moving, defect=defect)
    moving.check(*BEFORE, *AFTER, *LATER)
