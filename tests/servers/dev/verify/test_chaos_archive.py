"""The archive's kill matrix; tests/servers/archive/test_kill.py has the part of every run."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from archive.fault_points import ArchivePoint
from dev.verify.chaos.archive_matrix import make_archive_setup, run_archive_cell
from dev.verify.chaos.matrix import Action, Cell
from dev.verify.chaos.mutants import ARCHIVE_MUTANTS, Mutant
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dev.local_stack.servers.kafka import KafkaBroker
    from tests.support.archive.archive_run import ArchiveSetup

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive]


@pytest.fixture(scope="module")
def make(kafka: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], ArchiveSetup]]:
    """Makes a topic of its own."""
    folder = tmp_path_factory.mktemp("archive")
    numbers = itertools.count()
    registry = Registry(folder / "registry.db").start()

    def setup() -> ArchiveSetup:
        name = f"{folder.name}-{next(numbers)}"
        return make_archive_setup(kafka.bootstrap_servers, registry.url, name, folder / name)

    yield setup
    registry.stop()


@pytest.mark.parametrize("action", Action, ids=lambda action: action.name.lower())
@pytest.mark.parametrize("point", ArchivePoint, ids=lambda point: point.name.lower())
def test_each_message_is_in_one_file(make: Callable[[], ArchiveSetup], point: ArchivePoint, action: Action) -> None:
    cell = Cell(point, action, 1, "begun" if point is ArchivePoint.INTENT_READ else "fresh")
    assert run_archive_cell(make(), cell).problem == ""


@pytest.mark.parametrize("mutant", ARCHIVE_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_defect_turns_its_cell_red(make: Callable[[], ArchiveSetup], mutant: Mutant) -> None:
    cell = Cell(mutant.point, mutant.action, 1, "fresh")
    assert run_archive_cell(make(), cell, mutant.seed).problem != ""
