"""The program in Spark, with a catalog: its tables have what the topic has."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from tests.support.archive.archive_program import ArchiveProgram

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.archive.archive_run import ArchiveSetup

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

MESSAGES = 300
WAIT_SECONDS = 300.0


def test_a_topic_becomes_a_table(setup: ArchiveSetup, tmp_path: Path) -> None:
    setup.send(0, MESSAGES)
    uri = f"sqlite:///{tmp_path}/catalog.db"
    own = setup.settings(catalog_type="sql", catalog_uri=uri, register_seconds=1, spark_master="local[2]").archive
    program = ArchiveProgram(setup, own, tmp_path)
    assert program.answer("check") == "ok: 1 topics\n"
    assert program.answer("plan").startswith(f"{setup.topic} → {setup.table} (iceberg, by ")
    catalog = SqlCatalog("lake", uri=uri)
    wanted = [number for number in range(MESSAGES) if number % 10 != 9]
    with program.running() as process:
        deadline = time.monotonic() + WAIT_SECONDS
        while _numbers(catalog, setup.table) != wanted:
            assert process.poll() is None, program.log.read_text()
            assert time.monotonic() < deadline, program.log.read_text()
            time.sleep(1)
    setup.check(MESSAGES)
    assert program.answer("verify", "--rows").startswith(f"ok: {len(wanted)} rows of 1 topics")


def _numbers(catalog: SqlCatalog, table: str) -> list[int]:
    """The rows of the table, by PyIceberg."""
    if not catalog.namespace_exists(table.rpartition(".")[0]) or not catalog.table_exists(table):
        return []
    return sorted(catalog.load_table(table).scan().to_arrow().column("_row_sequence").to_pylist())
