"""The PostgreSQL server that the tests share, and an empty database for each test."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.support.schematizer.postgresql import REQUIRED, PostgreSQL, new_folder, programs

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    if programs() is None:
        if os.environ.get(REQUIRED):
            pytest.fail(f"{REQUIRED} is set, and PostgreSQL is not installed: apt-get install postgresql")
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    server = PostgreSQL(new_folder()).start()
    yield server
    server.stop()


@pytest.fixture
def url(postgresql: PostgreSQL) -> str:
    """An empty database."""
    return postgresql.new_database()
