"""Compares a table with the fold of its topic at exactly the offsets that the table is at.

State and table are read in one snapshot, so loads may go on. The messages before the offsets are staged, their newest
versions are the fold, and the warehouse joins both by `_key`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from warehouse.faults import state_foreign
from warehouse.names import quoted
from warehouse.tables.forms import CHANGED_AT, DELETED_AT, KEY, OP, SEQUENCE
from warehouse.targets.connection import LoadTakenError
from warehouse.targets.staging import own_columns, staged_columns
from warehouse.targets.statements import STAGE, claim_state, create_stage, full_name, staged_value, tombstones

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.records import Column, Rows, State, TableName
    from warehouse.tables.forms import Form
    from warehouse.tables.types import Dialect
    from warehouse.targets.loader import Loader

_FOLD = "_cdc_fold"
_DIFFERENT = "_cdc_different"


class Difference(NamedTuple):
    """A row that differs. Without its values."""

    # The row's `_key`.
    key: str
    # Whether it is `missing` in the table, `surplus` there, or `different`.
    kind: str
    # The columns that differ.
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.key} {self.kind}" + (f" in {', '.join(self.columns)}" if self.columns else "")


class TableAudit:
    """The audit of one table."""

    def __init__(self, loader: Loader, table: TableName) -> None:
        self._loader = loader
        self._connection = loader.connection
        self._table = table
        self._form = loader.form
        self._columns: Sequence[Column] = ()

    @contextmanager
    def snapshot(self, *, repairs: bool) -> Iterator[State]:
        """The state of the table. repairs: keep loaders out until the end. CdcError. LoadTakenError."""
        with self._connection.snapshot(self._table):
            state = self._loader.read_state(self._table)
            if state is None:
                raise state_foreign(self._table, "is missing: it was never loaded")
            if repairs:
                claim = claim_state(self._loader.state_schema)
                if not self._connection.run(claim, state.as_json(), *self._table, state.version):
                    raise LoadTakenError(str(self._table))
            self._columns = state.columns
            self._connection.run(create_stage(own_columns(self._form), self._columns, self._connection.dialect))
            yield state
            for name in (STAGE, _FOLD, _DIFFERENT):
                self._connection.run(f"DROP TABLE IF EXISTS {name}")

    def add(self, found: Sequence[Rows]) -> None:
        """Stage versions of rows, in any order."""
        for rows in found:
            self._connection.stage(STAGE, staged_columns(rows, self._columns, self._form, self._connection.dialect))

    def compare(self) -> int:
        """The number of rows that differ."""
        for statement in compare_statements(self._table, self._columns, self._form, self._connection.dialect):
            self._connection.run(statement)
        return int(self._connection.run(f"SELECT COUNT(*) FROM {_DIFFERENT}")[0][0])

    def differences(self, most: int) -> list[Difference]:
        """The first rows that differ, by their keys."""
        found = self._connection.run(f"SELECT * FROM {_DIFFERENT} ORDER BY {KEY} LIMIT {most}")
        names = [*self._form.own_names[1:], *(column.name for column in self._columns)]
        return [
            Difference(str(key), kind, tuple(name for name, differs in zip(names, flags, strict=True) if differs))
            for key, kind, *flags in found
        ]

    def repair(self) -> None:
        """Make the rows that differ those of the fold."""
        names = ", ".join([*self._form.own_names, *(quoted(column.name) for column in self._columns)])
        of_different = f"{KEY} IN (SELECT {KEY} FROM {_DIFFERENT})"
        name = full_name(self._table)
        self._connection.run(f"DELETE FROM {name} WHERE {of_different}")
        if self._form.has_tombstones:
            gone = full_name(tombstones(self._table))
            self._connection.run(f"DELETE FROM {gone} WHERE {KEY} IN (SELECT {KEY} FROM {_FOLD}) AND {of_different}")
        self._connection.run(f"INSERT INTO {name} ({names}) SELECT {names} FROM {_FOLD} WHERE {of_different}")


def compare_statements(table: TableName, columns: Sequence[Column], form: Form, dialect: Dialect) -> list[str]:
    """Make the fold of what is staged, and the rows that differ from it: key, kind, and a flag for each column."""
    values = "".join(f", {staged_value(column, dialect)} AS {quoted(column.name)}" for column in columns)
    newest = f"ROW_NUMBER() OVER (PARTITION BY {KEY} ORDER BY {SEQUENCE} DESC) AS _place"
    own, living = SEQUENCE, f" AND {OP} <> 'd'"
    flags = [f"t.{SEQUENCE} <> f.{SEQUENCE}"]
    if form.marks_deleted:
        own, living = f"{SEQUENCE}, CASE WHEN {OP} = 'd' THEN {CHANGED_AT} END AS {DELETED_AT}", ""
        flags.append(f"t.{DELETED_AT} IS DISTINCT FROM f.{DELETED_AT}")
    for column in columns:
        name = quoted(column.name) + ("::TEXT" if column.type == "JSON" else "")  # PostgreSQL does not compare JSON
        flags.append(f"t.{name} IS DISTINCT FROM f.{name}")
    both = f"t.{KEY} IS NOT NULL AND f.{KEY} IS NOT NULL"
    shown = ", ".join(f"({both} AND {flag}) AS d{number}" for number, flag in enumerate(flags))
    kind = f"CASE WHEN t.{KEY} IS NULL THEN 'missing' WHEN f.{KEY} IS NULL THEN 'surplus' ELSE 'different' END AS kind"
    placed = f"SELECT s.*, {newest} FROM {STAGE} AS s"
    return [
        (
            f"CREATE TEMPORARY TABLE {_FOLD} AS SELECT {KEY}, {own}{values} FROM ({placed}) AS s "
            f"WHERE _place = 1{living}"
        ),
        (
            f"CREATE TEMPORARY TABLE {_DIFFERENT} AS SELECT COALESCE(t.{KEY}, f.{KEY}) AS {KEY}, {kind}, {shown} "
            f"FROM {full_name(table)} AS t FULL JOIN {_FOLD} AS f ON t.{KEY} = f.{KEY} "
            f"WHERE t.{KEY} IS NULL OR f.{KEY} IS NULL OR {' OR '.join(flags)}"
        ),
    ]
