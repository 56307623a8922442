"""Watson over a catalogue to look at."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from schematizer.model.database import Database
from tests.support.schematizer import watson_data
from tests.support.schematizer.watson import Watson, watson_over

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def filled_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database to copy: filling it takes longer than looking at it."""
    file = tmp_path_factory.mktemp("watson") / "registry.db"
    database = Database(f"sqlite:///{file}")
    watson = watson_over(database)
    watson_data.fill(watson.store, watson.catalogue)
    database.close()
    return file


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Watson]:
    database = Database(f"sqlite:///{tmp_path / 'registry.db'}")
    yield watson_over(database)
    database.close()


@pytest.fixture
def database(tmp_path: Path, filled_file: Path) -> Iterator[Database]:
    shutil.copy(filled_file, tmp_path / "registry.db")
    opened = Database(f"sqlite:///{tmp_path / 'registry.db'}")
    yield opened
    opened.close()


@pytest.fixture
def watson(database: Database) -> Watson:
    return watson_over(database)


@pytest.fixture(scope="session")
def shown(filled_file: Path) -> Iterator[Watson]:
    """Yield Watson for tests that only look."""
    database = Database(f"sqlite:///{filled_file}")
    yield watson_over(database)
    database.close()
