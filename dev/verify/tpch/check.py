"""Compares the joins of TPC-H's tables with DuckDB's."""

from __future__ import annotations

import random
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cdc_common.program.cli import reported_errors
from dev.verify.tpch.data import COLUMNS, Tables, generate
from dev.verify.tpch.joins import JOINS, sql_of
from dev.verify.tpch.judges import KINDS, DuckDB
from dev.verify.tpch.pipeline import Catalogue, JoinRun, TableLog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dev.verify.tpch.data import Change
    from dev.verify.tpch.judges import Judge
    from stream_runtime.records import SourceRecord

BATCH = 2_000


class Check:
    """The tables, and all joins of them."""

    def __init__(self, folder: Path, tables: Tables) -> None:
        self.tables = tables
        catalogue = Catalogue()
        self._logs = {table: TableLog(catalogue, table) for table in COLUMNS}
        self.runs = {join.target.source: JoinRun(join, catalogue, folder) for join in JOINS}

    def load(self) -> int:
        """All rows are there before the joins begin: each joined row is sent once."""
        count = self._take_all(self.tables.all())
        for topic in [*COLUMNS, *self.runs]:
            for run in self.runs.values():
                self._pass_on(run.plan.join.target.source, run.mark(topic))
        return count

    def change(self, seed: int, count: int) -> int:
        return self._take_all(self.tables.changes(random.Random(seed), count))

    def differences(self, judge: Judge | None = None) -> dict[str, int]:
        """How many joined rows differ from those of an empty database, DuckDB by default, by join."""
        with closing(judge or DuckDB()) as database:
            for table, columns in COLUMNS.items():
                kinds = ", ".join(f"{name} {KINDS[kind]}" for name, kind in columns.items())
                database.execute(f"CREATE TABLE {table} ({kinds})")
                database.insert(table, [tuple(row.values()) for row in self.tables.rows[table].values()])
            return {name: self._different(database, name, run) for name, run in self.runs.items()}

    def _different(self, database: Judge, name: str, run: JoinRun) -> int:
        fields = ", ".join(field["name"] for field in run.plan.row_fields)
        database.execute(f"CREATE VIEW {name} ({fields}) AS {sql_of(run.plan)}")
        database.execute(f"CREATE TABLE joined_{name} AS SELECT * FROM {name} LIMIT 0")
        database.insert(f"joined_{name}", run.rows())
        both = (f"SELECT * FROM {name}", f"SELECT * FROM joined_{name}")
        sides = (f"SELECT count(*) FROM ({one} EXCEPT ALL {other}) AS more" for one, other in (both, both[::-1]))
        return sum(map(database.count, sides))

    def close(self) -> None:
        for run in self.runs.values():
            run.close()

    def _take_all(self, changes: Iterable[Change]) -> int:
        waiting: dict[str, list[SourceRecord]] = {}
        count = 0
        for change in changes:
            count += 1
            waiting.setdefault(change.table, []).append(self._logs[change.table].record(change))
            if count % BATCH == 0:
                self._flush(waiting)
        self._flush(waiting)
        return count

    def _flush(self, waiting: dict[str, list[SourceRecord]]) -> None:
        for table, records in waiting.items():
            self._pass_on(table, records)
        waiting.clear()

    def _pass_on(self, topic: str, records: list[SourceRecord]) -> None:
        """Give messages to all joins, and what comes out to those that read it."""
        if records:
            for name, run in self.runs.items():
                self._pass_on(name, run.take(topic, records))


@click.command()
@click.option("--scale", default=0.01, help="TPC-H's scale factor.")
@click.option("--changes", default=20_000, help="How many refreshes.")
@click.option("--seed", default=1, help="Of the refreshes.")
def main(scale: float, changes: int, seed: int) -> None:
    """Join TPC-H's tables and their changes, and compare with DuckDB."""
    with reported_errors(), tempfile.TemporaryDirectory() as folder:
        check = Check(Path(folder), generate(Path(folder), scale))
        try:
            wrong = 0
            for what, work in (("loaded", check.load), ("changed", lambda: check.change(seed, changes))):
                count = work()
                found = check.differences()
                wrong += sum(found.values())
                click.echo(f"{what}: {count:,} changes of tables; rows that differ from DuckDB's: {found}")
            for name, run in check.runs.items():
                million = run.messages / 1e6
                click.echo(
                    f"{name}: {run.messages:,} messages, {run.changes:,} changes, {len(run.rows()):,} joined rows; "
                    f"CPU s per million messages: route {run.routed / million:.1f}, join {run.joined / million:.1f}; "
                    f"state {run.state_bytes() / 2**20:.1f} MiB"
                )
        finally:
            check.close()
    sys.exit(1 if wrong else 0)
