"""The kill matrix of the archive's protocol: every fault point, hurt in every way, on a real broker and registry.

Each cell archives a topic of its own, in processes of its own, which end their cuts at different numbers of messages.
In the end each message is in one file, the ledger fits the files, and so it is after later messages.
"""

from __future__ import annotations

import signal
from functools import partial
from typing import TYPE_CHECKING

from archive.fault_points import ArchivePoint
from dev.verify.chaos.child import census, start
from dev.verify.chaos.matrix import Cell, Outcome, cells, finish, hurt_and_finish, judge
from stream_runtime.fault_points import Fault
from tests.support.archive.archive_run import ArchiveSetup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from dev.verify.chaos.matrix import Defect
    from stream_runtime.fault_points import Point

MESSAGES = 200
LATER = 20


def make_archive_setup(bootstrap: str, registry: str, name: str, folder: Path) -> ArchiveSetup:
    """A topic of three partitions with so many messages."""
    folder.mkdir(parents=True, exist_ok=True)
    setup = ArchiveSetup(bootstrap, registry, name, str(folder), is_varied=True)
    setup.make_topic()
    setup.send(0, MESSAGES)
    return setup


def fresh(_setup: ArchiveSetup) -> None:
    """The topic has never been read."""


def begun(setup: ArchiveSetup) -> None:
    """A worker has died with an intent stored, and none of its files."""
    child = start(setup, Fault(ArchivePoint.INTENT_STORED, 1, "kill"))
    assert child.wait() == -signal.SIGKILL, child.output()


SCENARIOS: Mapping[str, Callable[[ArchiveSetup], None]] = {"fresh": fresh, "begun": begun}


def archive_cells(make: Callable[[], ArchiveSetup], seed: int) -> Iterator[Cell]:
    """Yield the cells of the archive's protocol. See matrix.cells."""
    found: dict[str, dict[Point, int]] = {}
    for name, prepare in SCENARIOS.items():
        setup = make()
        prepare(setup)
        found[name] = census(setup)
    return cells(found, seed, ArchivePoint)


def run_archive_cell(setup: ArchiveSetup, cell: Cell, defect: Defect = None) -> Outcome:
    """Run one cell of the archive's matrix, as matrix.run_cell does."""
    return judge(cell, partial(_run_archive_cell, setup, cell, defect))


def _run_archive_cell(setup: ArchiveSetup, cell: Cell, defect: Defect) -> None:
    SCENARIOS[cell.scenario](setup)
    hurt_and_finish(setup, cell, defect)
    setup.check(MESSAGES)
    setup.send(MESSAGES, MESSAGES + LATER)
    finish(setup, defect=defect)
    setup.check(MESSAGES + LATER)
