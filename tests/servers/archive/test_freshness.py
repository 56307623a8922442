"""With default rotation: how soon a row can be queried, and how soon a new topic is a table."""

from __future__ import annotations

import statistics
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from archive.settings import ArchiveSettings
from dev.local_stack.servers.programs import READY_LINE
from tests.support.archive.archive_program import ArchiveProgram

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.archive.archive_run import ArchiveSetup

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(900)]

SENDING_SECONDS = 200.0
PERIOD_SECONDS = 0.5  # between transactions of AT_ONCE messages, and between looks at the table
AT_ONCE = 10
START_SECONDS = 300.0
MOST_SECONDS = 60.0
MOST_NEW_TOPIC_SECONDS = 120.0
ROTATION = ("cut_rows", "cut_bytes", "cut_seconds", "cut_files", "register_seconds")


class Seen(NamedTuple):
    """A row in the table."""

    # The number of its change.
    number: int
    # The wall time at which a reader saw it first.
    at: float


def test_rows_can_be_queried_within_a_minute(setup: ArchiveSetup, tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    program = ArchiveProgram(setup, with_default_rotation(setup, uri), tmp_path)
    with program.running() as process:
        wait_until_ready(program, process)
        setup = setup._replace(prefix=f"{setup.prefix}-new")
        setup.make_topic()
        sent: dict[int, float] = {}
        seen: dict[int, float] = {}
        rows = Rows(SqlCatalog("lake", uri=uri), setup.table)
        began = time.time()
        while time.time() < began + SENDING_SECONDS + MOST_NEW_TOPIC_SECONDS:
            assert process.poll() is None, program.log.read_text()
            if time.time() < began + SENDING_SECONDS:
                setup.send(len(sent), len(sent) + AT_ONCE)
                sent |= dict.fromkeys(range(len(sent), len(sent) + AT_ONCE), time.time())
            seen |= dict(rows.fresh())
            if len(seen) == sum(number % 10 != 9 for number in sent) and time.time() > began + SENDING_SECONDS:
                break
            time.sleep(PERIOD_SECONDS)
    first = seen[0] - sent[0]
    # Of rows that were sent once the table was there.
    ages = sorted(at - sent[number] for number, at in seen.items() if sent[number] > seen[0])
    p50, p99 = statistics.median(ages), ages[int(len(ages) * 0.99)]
    sys.stdout.write(f"{len(ages)} rows: p50 {p50:.1f} s, p99 {p99:.1f} s; the first one after {first:.1f} s\n")
    assert set(seen) == {number for number in sent if number % 10 != 9}
    assert p99 <= MOST_SECONDS
    assert first <= MOST_NEW_TOPIC_SECONDS


def with_default_rotation(setup: ArchiveSetup, uri: str) -> ArchiveSettings:
    defaults = ArchiveSettings()
    rotation = {name: getattr(defaults, name) for name in ROTATION}
    own = {"catalog_type": "sql", "catalog_uri": uri, "spark_master": "local[2]", "topics": [f"{setup.prefix}.*"]}
    return setup.settings(**own, **rotation).archive


def wait_until_ready(program: ArchiveProgram, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while READY_LINE not in program.log.read_text():
        assert process.poll() is None, program.log.read_text()
        assert time.monotonic() < deadline, program.log.read_text()
        time.sleep(PERIOD_SECONDS)


class Rows:
    """The rows of a table, as a reader that asks the catalog again and again sees them."""

    def __init__(self, catalog: SqlCatalog, table: str) -> None:
        self._catalog = catalog
        self._table = table
        self._known: set[str] = set()

    def fresh(self) -> Iterator[Seen]:
        """Yield the rows of files that the table did not have before."""
        if not self._catalog.namespace_exists(self._table.rpartition(".")[0]):
            return
        if not self._catalog.table_exists(self._table):
            return
        paths = {task.file.file_path for task in self._catalog.load_table(self._table).scan().plan_files()}
        now = time.time()
        for path in paths - self._known:
            column = pq.read_table(path.removeprefix("file://"), columns=["_row_sequence"], partitioning=None)
            yield from (Seen(number, now) for number in column.column(0).to_pylist())
        self._known |= paths
