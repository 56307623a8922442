"""A part of `make verify WHAT=chaos` in every run: a kill at each point, and some workers that come back."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from dev.verify.chaos.matrix import Action, Cell, cells, make_setup, reached, run_cell
from stream_runtime.fault_points import FaultPoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from dev.local_stack.servers.kafka import KafkaBroker
    from stream_runtime.fault_points import Point
    from tests.support.materializer.protocol_run import Setup

SEED = 1
ALL_CELLS = [
    *((point, Action.KILL) for point in FaultPoint),
    (FaultPoint.AFTER_POSITION, Action.ZOMBIE),
    (FaultPoint.AFTER_CHANGELOG, Action.ZOMBIE),
    (FaultPoint.AFTER_SEND_OFFSETS, Action.ZOMBIE),
    (FaultPoint.IN_UPLOAD, Action.ZOMBIE),
    (FaultPoint.AFTER_SEND_OFFSETS, Action.SLEEPER),
    (FaultPoint.AFTER_CHANGELOG, Action.RAISE),
]


@pytest.fixture(scope="module")
def make(kafka: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Setup]:
    """Makes a raw partition of its own."""
    folder = tmp_path_factory.mktemp("chaos")
    numbers = itertools.count()

    def setup() -> Setup:
        name = f"{folder.name}-{next(numbers)}"
        return make_setup(kafka.bootstrap_servers, name, folder / name)

    return setup


@pytest.fixture(scope="module")
def matrix(make: Callable[[], Setup]) -> dict[tuple[Point, Action], Cell]:
    return {(cell.point, cell.action): cell for cell in cells(reached(make), SEED)}


@pytest.mark.servers
@pytest.mark.parametrize(("point", "action"), ALL_CELLS, ids=lambda one: one.name.lower())
def test_what_a_crash_leaves_is_the_old_truth_or_the_new_one(
    make: Callable[[], Setup], matrix: dict[tuple[Point, Action], Cell], point: FaultPoint, action: Action
) -> None:
    assert run_cell(make(), matrix[point, action]).problem == ""
