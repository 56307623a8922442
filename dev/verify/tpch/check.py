"""Compares the joins of TPC-H's tables with DuckDB's."""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import duckdb

from cdc_common.program.cli import reported_errors
from dev.verify.tpch.data import COLUMNS, KINDS, Tables, generate
from dev.verify.tpch.joins import JOINS, sql_of
from dev.verify.tpch.pipeline import Catalogue, JoinRun, TableLog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dev.verify.tpch.data import Change
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

    def differences(self) -> dict[str, int]:
        """How many joined rows differ from DuckDB's, by join."""
        with duckdb.connect() as database:
            for table, columns in COLUMNS.items():
                kinds = ", ".join(f"{name} {KINDS[kind]}" for name, kind in columns.items())
                _fill(database, table, kinds, [tuple(row.values()) for row in self.tables.rows[table].values()])
            found = {}
            for name, run in self.runs.items():
                fields = ", ".join(field["name"] for field in run.plan.row_fields)
                database.execute(f"CREATE VIEW {name} ({fields}) AS {sql_of(run.plan)}")
                database.execute(f"CREATE TABLE joined_{name} AS SELECT * FROM {name} LIMIT 0")
                _insert(database, f"joined_{name}", run.rows())
                both = (f"SELECT * FROM {name}", f"SELECT * FROM joined_{name}")
                sides = (f"SELECT count(*) FROM ({a} EXCEPT ALL {b})" for a, b in (both, both[::-1]))
                found[name] = sum(database.execute(side).fetchall()[0][0] for side in sides)
        return found

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


def _fill(database: duckdb.DuckDBPyConnection, table: str, columns: str, rows: list[tuple[Any, ...]]) -> None:
    database.execute(f"CREATE TABLE {table} ({columns})")
    _insert(database, table, rows)


def _insert(database: duckdb.DuckDBPyConnection, table: str, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        import pyarrow as pa  # noqa: PLC0415 - for the judge alone

        names = [f"c{number}" for number in range(len(rows[0]))]
        columns = pa.table({name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)})
        database.register("given", columns)
        database.execute(f"INSERT INTO {table} SELECT * FROM given")
        database.unregister("given")


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
