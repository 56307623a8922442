"""DuckDB's own: each type, and a file that another process has open."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from tests.support.warehouse.types_checks import DUCKDB_QUERIES, check_types, check_widened
from warehouse.tables.forms import CHANGES, CURRENT, HISTORY, Form
from warehouse.targets.duckdb import DuckDbConnection

if TYPE_CHECKING:
    from pathlib import Path

_HOLD = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("form", [CURRENT, CHANGES, HISTORY], ids=lambda form: form.name)
def test_each_type(tmp_path: Path, form: Form) -> None:
    check_types(lambda: DuckDbConnection(tmp_path / "w.duckdb", 1.0), DUCKDB_QUERIES, form)


@pytest.mark.parametrize("form", [CURRENT, CHANGES, HISTORY], ids=lambda form: form.name)
def test_types_become_wider(tmp_path: Path, form: Form) -> None:
    check_widened(lambda: DuckDbConnection(tmp_path / "w.duckdb", 1.0), form)


def test_a_file_that_another_process_has_open(tmp_path: Path) -> None:
    """The load waits, and is refused after lock_seconds; once the file is free it goes on."""
    file = tmp_path / "w.duckdb"
    command = [sys.executable, "-c", _HOLD, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        connection = DuckDbConnection(file, 0.2)
        with pytest.raises(CdcError) as caught:
            connection.run("SELECT 1")
        assert caught.value.code is Code.WAREHOUSE_AWAY
        other.communicate()
    assert connection.run("SELECT 1") == [(1,)]
    connection.close()
