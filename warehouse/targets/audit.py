"""Compares a table with the fold of its topic at exactly the offsets that the table is at.

State and table are read in one snapshot, so loads may go on. The messages before the offsets are staged, and the
warehouse makes their fold and joins both (warehouse.targets.folds). Of `changes` and `history`, whose every version is
staged, the audit also says where the `before` of a change is not the version before it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from warehouse.faults import state_foreign
from warehouse.tables.columns import taken_columns
from warehouse.tables.forms import KEY, SEQUENCE
from warehouse.targets.connection import LoadTakenError
from warehouse.targets.folds import (
    BEFORE,
    DIFFERENT,
    IS_THERE,
    SCHEMA,
    TABLES,
    Audited,
    broken_statement,
    compare_statements,
    repair_statements,
)
from warehouse.targets.staging import Staged, key_values, own_columns, row_columns, staged_columns
from warehouse.targets.statements import STAGE, create_stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.records import Column, Rows, State, TableName
    from warehouse.targets.loader import Loader

_OWN_BEFORE = ((KEY, "UUID"), (SEQUENCE, "BIGINT"), (SCHEMA, "BIGINT"), (IS_THERE, "BOOLEAN"))
_NO_ROW = "the row before"


class Difference(NamedTuple):
    """A row that differs. Without its values."""

    # The row's `_key`.
    key: str
    # Whether it is `missing` in the table, `surplus` there, or `different`; or a change is `broken`: its `before` is
    # not the version before it.
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
        self._audited = self._audited_with(())
        self._schemas: dict[int, Sequence[Column]] = {}

    @contextmanager
    def snapshot(self, *, repairs: bool) -> Iterator[State]:
        """The state of the table. repairs: keep loaders out until the end. CdcError. LoadTakenError."""
        with self._connection.snapshot(self._table):
            state = self._loader.read_state(self._table)
            if state is None:
                raise state_foreign(self._table, "is missing: it was never loaded")
            if repairs and not self._loader.states.claim(self._table, state, state.version):
                raise LoadTakenError(str(self._table))
            self._audited = self._audited_with(state.columns)
            dialect = self._connection.dialect
            self._connection.run(create_stage(own_columns(self._form), state.columns, dialect))
            if self._form.keeps_all:
                self._connection.run(create_stage(_OWN_BEFORE, state.columns, dialect, BEFORE))
            yield state
            for name in TABLES:
                self._connection.run(f"DROP TABLE IF EXISTS {name}")

    def add(self, found: Sequence[Rows]) -> None:
        """Stage versions of rows, in any order."""
        dialect, columns = self._connection.dialect, self._audited.columns
        for rows in found:
            self._connection.stage(STAGE, staged_columns(rows, columns, self._form, dialect))

    def add_before(self, schema_id: int, found: Rows, is_there: pa.Array) -> None:
        """Stage the rows before changes of a schema. is_there: whether there is one."""
        columns, dialect = self._audited.columns, self._connection.dialect
        taken = row_columns(found, columns, dialect)
        ids = pa.repeat(pa.scalar(schema_id, pa.int64()), len(found))
        values = (key_values(found), pa.array(found.sequences, pa.int64()), ids, is_there)
        own = [Staged(*column, array) for column, array in zip(_OWN_BEFORE, values, strict=True)]
        self._connection.stage(BEFORE, [*own, *taken])
        self._schemas[schema_id] = [column for column, _ in taken_columns(columns, found.values.schema.names)]

    def compare(self) -> int:
        """The number of rows that differ."""
        for statement in compare_statements(self._audited):
            self._connection.run(statement)
        return int(self._connection.run(f"SELECT COUNT(*) FROM {DIFFERENT}")[0][0])

    def differences(self, most: int) -> list[Difference]:
        """The first rows that differ, by their keys."""
        names = [*self._audited.compared, *(column.name for column in self._audited.columns)]
        flags = ", ".join(f"d{number}" for number in range(len(names)))
        found = self._connection.run(f"SELECT {KEY}, kind, {flags} FROM {DIFFERENT} ORDER BY {KEY} LIMIT {most}")
        return [_difference(key, kind, names, shown) for key, kind, *shown in found]

    def broken(self) -> list[Difference]:
        """The changes whose `before` is not the version before them."""
        found: list[Difference] = []
        for schema_id, columns in self._schemas.items():
            names = [_NO_ROW, *(column.name for column in columns)]
            read = self._connection.run(broken_statement(schema_id, columns))
            found += [_difference(key, "broken", names, shown) for key, *shown in read]
        return found

    def repair(self) -> None:
        """Make the rows that differ those of the fold."""
        for statement in repair_statements(self._audited):
            self._connection.run(statement)

    def _audited_with(self, columns: Sequence[Column]) -> Audited:
        connection, loader = self._connection, self._loader
        is_indexed, forgets = connection.is_indexed, bool(loader.deleted_days)
        return Audited(self._table, columns, self._form, connection.dialect, is_indexed, forgets)


def _difference(key: object, kind: str, names: Sequence[str], flags: Sequence[object]) -> Difference:
    return Difference(str(key), kind, tuple(name for name, differs in zip(names, flags, strict=True) if differs))
