"""A part of the shares' kill matrix in every run; the rest by `make verify WHAT=chaos`."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from dev.verify.chaos.matrix import Action, Cell
from dev.verify.chaos.mutants import SHARE_MUTANTS, Mutant
from dev.verify.chaos.share_matrix import SCENARIOS, make_share_setup, run_share_cell
from stream_runtime.fault_points import StatelessPoint
from tests.support.stream_runtime.share_run import POINTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from dev.local_stack.servers.kafka import KafkaBroker
    from tests.support.stream_runtime.share_run import ShareSetup

pytestmark = pytest.mark.servers

EVERY_RUN = {
    (StatelessPoint.ALL_SENT, Action.ZOMBIE),
    (StatelessPoint.OFFSET_SENT, Action.KILL),
    (StatelessPoint.CHUNK_COMMITTED, Action.ZOMBIE),
}
CELLS = [
    pytest.param(point, action, marks=[] if (point, action) in EVERY_RUN else pytest.mark.exhaustive)
    for point in POINTS
    for action in Action
]
FIRST_TIME = {StatelessPoint.TASK_OPENING, StatelessPoint.TASK_FENCED, StatelessPoint.OFFSET_READ}


@pytest.fixture(scope="module")
def make(kafka: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], ShareSetup]:
    """Makes a source of its own."""
    folder = tmp_path_factory.mktemp("share")
    numbers = itertools.count()

    def setup() -> ShareSetup:
        name = f"{folder.name}-{next(numbers)}"
        return make_share_setup(kafka.bootstrap_servers, name, folder / name)

    return setup


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize(("point", "action"), CELLS, ids=lambda one: one.name.lower())
def test_each_message_of_a_share_comes_out_once(
    make: Callable[[], ShareSetup], point: StatelessPoint, action: Action, scenario: str
) -> None:
    cell = Cell(point, action, 1 if point in FIRST_TIME else 3, scenario)
    assert run_share_cell(make(), cell).problem == ""


@pytest.mark.parametrize("mutant", SHARE_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_defect_turns_its_cell_red(make: Callable[[], ShareSetup], mutant: Mutant) -> None:
    cell = Cell(mutant.point, mutant.action, 3, mutant.scenario)
    assert run_share_cell(make(), cell, mutant.seed).problem != ""
