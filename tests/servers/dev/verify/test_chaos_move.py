"""A part of the kill matrix of moves to another change topic in every run; the rest by `make verify WHAT=chaos`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dev.verify.chaos.matrix import Action, Cell
from dev.verify.chaos.move_matrix import make_move_setup, run_move_cell
from dev.verify.chaos.mutants import MOVE_MUTANTS, Mutant
from stream_runtime.fault_points import FaultPoint

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker
    from tests.support.materializer.move_run import MoveSetup

pytestmark = pytest.mark.servers

CELLS = [
    Cell(FaultPoint.AFTER_COMMIT, Action.KILL, 7, "move"),
    Cell(FaultPoint.AFTER_SEND_OFFSETS, Action.ZOMBIE, 3, "restored in the move"),
]


@pytest.fixture
def setup(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> MoveSetup:
    return make_move_setup(kafka.bootstrap_servers, topic_prefix, tmp_path)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell.point.name}-{cell.action.name}".lower())
def test_each_row_moves_once(setup: MoveSetup, cell: Cell) -> None:
    assert run_move_cell(setup, cell).problem == ""


@pytest.mark.exhaustive
@pytest.mark.parametrize("mutant", MOVE_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_defect_turns_its_cell_red(setup: MoveSetup, mutant: Mutant) -> None:
    cell = Cell(mutant.point, mutant.action, 7, mutant.scenario)
    assert run_move_cell(setup, cell, mutant.seed).problem != ""
