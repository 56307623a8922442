"""The checker checked: each defect of the protocol turns its cell of the matrix red."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dev.verify.chaos.matrix import Cell, make_setup, run_cell
from dev.verify.chaos.mutants import MUTANTS, Mutant
from stream_runtime.fault_points import FaultPoint, Point

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive]
NTH: dict[Point, int] = {FaultPoint.AFTER_CLEANUP: 1}  # the others in the midst of a run, and of a batch


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_defect_turns_its_cell_red(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path, mutant: Mutant) -> None:
    cell = Cell(mutant.point, mutant.action, NTH.get(mutant.point, 7), mutant.scenario)
    setup = make_setup(kafka.bootstrap_servers, topic_prefix, tmp_path)
    assert run_cell(setup, cell, mutant.seed).problem != ""
