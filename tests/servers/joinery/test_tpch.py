"""The joins of TPC-H's tables, with PostgreSQL as the judge."""

from __future__ import annotations

import os
from random import Random
from typing import TYPE_CHECKING

import pytest

from dev.verify.tpch import judges
from dev.verify.tpch.check import Check
from tests.support.joinery.tpch_tables import small_tables
from tests.support.schematizer.postgresql import REQUIRED, PostgreSQL, new_folder, programs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.servers,
    pytest.mark.timeout(300),
    pytest.mark.skipif(programs() is None and REQUIRED not in os.environ, reason="PostgreSQL is not installed"),
]


@pytest.fixture
def postgresql() -> Iterator[PostgreSQL]:
    server = PostgreSQL(new_folder()).start()
    yield server
    server.stop()


def test_no_row_differs(postgresql: PostgreSQL, tmp_path: Path) -> None:
    check = Check(tmp_path, small_tables(Random(2)))
    try:
        for work in (check.load, lambda: check.change(2, 2000)):
            assert work() > 0
            assert sum(len(run.rows()) for run in check.runs.values()) > 100
            url = postgresql.new_database().replace("+psycopg", "")
            assert set(check.differences(judges.PostgreSQL(url)).values()) == {0}
    finally:
        check.close()
