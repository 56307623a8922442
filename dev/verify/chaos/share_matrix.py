"""The kill matrix of shares: every fault point, hurt in every way, on a real broker.

A share of two partitions is hurt at each point. Its successor has the same share, or (`changed`) a share for each
partition, and the one after it has one share again. In the end each message of both partitions has come out once, in
order. A zombie believes that it owns its share while its successor works.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dev.verify.chaos.child import census
from dev.verify.chaos.matrix import Cell, Outcome, cells, finish, hurt_and_finish, judge
from tests.support.stream_runtime.share_run import APART, POINTS, TOGETHER, ShareSetup

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.verify.chaos.matrix import Defect

MESSAGES = 120
LATER = 20
SCENARIOS = {"same": (TOGETHER,), "changed": (TOGETHER, APART)}


def make_share_setup(bootstrap: str, prefix: str, folder: Path) -> ShareSetup:
    """A source with so many messages in each partition."""
    folder.mkdir(parents=True, exist_ok=True)
    setup = ShareSetup(bootstrap, prefix, str(folder))
    setup.make_topics()
    setup.send(range(MESSAGES))
    return setup


def share_cells(setup: ShareSetup, scenario: str, seed: int) -> Iterator[Cell]:
    """Yield the cells of a scenario. See matrix.cells. The setup cannot be used again."""
    return cells({scenario: census(setup)}, seed, POINTS)


def run_share_cell(setup: ShareSetup, cell: Cell, defect: Defect = None) -> Outcome:
    """Run one cell of the shares' matrix, as matrix.run_cell does."""
    return judge(cell, partial(_run_share_cell, setup, cell, defect))


def _run_share_cell(setup: ShareSetup, cell: Cell, defect: Defect) -> None:
    setup = setup._replace(definitions=SCENARIOS[cell.scenario])
    hurt_and_finish(setup, cell, defect)
    setup.check(MESSAGES)
    setup.send(range(MESSAGES, MESSAGES + LATER))
    finish(setup, defect=defect)
    setup.check(MESSAGES + LATER)
