"""A part of the transformers' kill matrix in every run; the rest by `make verify WHAT=chaos`."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from dev.verify.chaos.matrix import Action, Cell
from dev.verify.chaos.mutants import TRANSFORM_MUTANTS, Mutant
from dev.verify.chaos.transform_matrix import make_setup_of, run_transform_cell
from stream_runtime.fault_points import StatelessPoint
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dev.local_stack.servers.kafka import KafkaBroker
    from tests.support.transformer.transform_run import TransformSetup

pytestmark = pytest.mark.servers

EVERY_RUN = {
    (StatelessPoint.SOME_SENT, Action.KILL),
    (StatelessPoint.OFFSET_SENT, Action.ZOMBIE),
    (StatelessPoint.CHUNK_COMMITTED, Action.KILL),
}
CELLS = [
    pytest.param(point, action, marks=[] if (point, action) in EVERY_RUN else pytest.mark.exhaustive)
    for point in StatelessPoint
    for action in Action
]
FIRST_TIME = {
    StatelessPoint.TASK_OPENING,
    StatelessPoint.TASK_FENCED,
    StatelessPoint.OFFSET_READ,
    StatelessPoint.SCHEMAS_REGISTERED,
}


@pytest.fixture(scope="module")
def make(kafka: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], TransformSetup]]:
    """Makes a source of its own."""
    folder = tmp_path_factory.mktemp("transform")
    numbers = itertools.count()
    registry = Registry(folder / "registry.db").start()

    def setup() -> TransformSetup:
        name = f"{folder.name}-{next(numbers)}"
        return make_setup_of(kafka.bootstrap_servers, registry.url, name, folder / name)

    yield setup
    registry.stop()


@pytest.mark.parametrize(("point", "action"), CELLS, ids=lambda one: one.name.lower())
def test_each_message_comes_out_once(make: Callable[[], TransformSetup], point: StatelessPoint, action: Action) -> None:
    cell = Cell(point, action, 1 if point in FIRST_TIME else 3, "fresh")
    assert run_transform_cell(make(), cell).problem == ""


@pytest.mark.exhaustive
@pytest.mark.parametrize("mutant", TRANSFORM_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_defect_turns_its_cell_red(make: Callable[[], TransformSetup], mutant: Mutant) -> None:
    cell = Cell(mutant.point, mutant.action, 3, mutant.scenario)
    assert run_transform_cell(make(), cell, mutant.seed).problem != ""
