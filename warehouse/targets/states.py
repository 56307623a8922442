"""The states of tables: rows of the warehouse, which say where each table is.

A load claims a state: it changes the row, if its version is still the one that was read. Of two that claim one version,
one changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.faults import state_foreign
from warehouse.records import State
from warehouse.targets.statements import (
    claim_state,
    create_state,
    create_state_table,
    delete_state,
    insert_state,
    lock_state,
    select_state,
    state_table,
)

if TYPE_CHECKING:
    from warehouse.records import TableName
    from warehouse.targets.connection import Connection


class States:
    """The states of a warehouse. Those of all tables are in one table, or each is in a table of its own."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection = connection
        self._schema = schema

    def prepare(self) -> None:
        """Make what is there before any table. CdcError."""
        for statement in create_state(self._schema, self._connection.dialect):
            self._connection.run(statement)

    def read(self, table: TableName) -> State | None:
        """The state of a table; None if it was never loaded. CdcError."""
        where = self._of(table)
        if self._connection.dialect.state_per_table:
            self._connection.run(create_state_table(where, self._connection.dialect))
        found = self._connection.run(select_state(where), *table)
        if not found:
            return None
        version, text = found[0]
        try:
            return State.from_json(version, text)
        except (ValueError, KeyError, TypeError) as error:
            raise state_foreign(table, "is of another version of this program") from error

    def insert(self, table: TableName, state: State) -> bool:
        """Give a table its first state, in a transaction. Whether it had none."""
        where = self._locked(table)
        statement = insert_state(where, self._connection.dialect)
        return self._connection.change(statement, *table, state.as_json(), *table) == 1

    def claim(self, table: TableName, state: State, version: int) -> bool:
        """Change the state, in a transaction. Whether it had that version."""
        where = self._locked(table)
        return self._connection.change(claim_state(where), state.as_json(), *table, version) == 1

    def delete(self, table: TableName, version: int) -> bool:
        """Forget the state, in a transaction. Whether it had that version."""
        where = self._locked(table)
        return self._connection.change(delete_state(where), *table, version) == 1

    def _of(self, table: TableName) -> str:
        return state_table(self._schema, table, self._connection.dialect)

    def _locked(self, table: TableName) -> str:
        """The table of a state, which no other transaction changes now."""
        where = self._of(table)
        if self._connection.dialect.state_per_table:
            self._connection.run(lock_state(where))
        return where
