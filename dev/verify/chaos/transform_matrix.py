"""The kill matrix of a transformer's protocol: every fault point, hurt in every way, on a real broker and registry.

Each cell runs a transformer over a source partition of its own, in processes of its own; in the end each message of the
source has come out once, in order and transformed, and so have those that are sent afterwards.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dev.verify.chaos.child import census
from dev.verify.chaos.matrix import Cell, Outcome, cells, finish, hurt_and_finish, judge
from stream_runtime.fault_points import StatelessPoint
from tests.support.transformer.scene import Scene
from tests.support.transformer.transform_run import TransformSetup

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.verify.chaos.matrix import Defect

MESSAGES = 240
LATER = 20


def make_setup_of(bootstrap: str, registry: str, name: str, folder: Path) -> TransformSetup:
    """A source with so many messages in each partition; the run transforms one partition."""
    folder.mkdir(parents=True, exist_ok=True)
    scene = Scene(bootstrap, registry, name, folder)
    scene.make_source()
    scene.write_file()
    scene.send(range(MESSAGES))
    return TransformSetup(bootstrap, registry, name, str(folder))


def transform_cells(setup: TransformSetup, seed: int) -> Iterator[Cell]:
    """Yield the cells of the transformers' protocol. See matrix.cells. The setup cannot be used again."""
    return cells({"fresh": census(setup)}, seed, StatelessPoint)


def run_transform_cell(setup: TransformSetup, cell: Cell, defect: Defect = None) -> Outcome:
    """Run one cell of the transformers' matrix, as matrix.run_cell does."""
    return judge(cell, partial(_run_transform_cell, setup, cell, defect))


def _run_transform_cell(setup: TransformSetup, cell: Cell, defect: Defect) -> None:
    hurt_and_finish(setup, cell, defect)
    setup.check(MESSAGES)
    setup.scene.send(range(MESSAGES, MESSAGES + LATER))
    finish(setup, defect=defect)
    setup.check(MESSAGES + LATER)
