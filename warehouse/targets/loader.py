"""The transaction of a load. Table and state change together, or not at all, and only one of several loaders does it.

1. Claim: the first statement changes the state's row, if its version is the one that was read. A loader that is too
   late changes nothing.
2. The table is made, or altered for the columns of a newer schema.
3. The rows are staged, and merged into the table.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from stream_runtime.fault_points import reach
from warehouse.fault_points import WarehousePoint
from warehouse.faults import offsets_differ, state_foreign
from warehouse.tables.columns import migration
from warehouse.tables.forms import CURRENT, Form
from warehouse.targets.connection import LoadTakenError
from warehouse.targets.copying import stage_objects
from warehouse.targets.staging import own_columns, staged_columns
from warehouse.targets.statements import (
    STAGE,
    comment_on,
    create_stage,
    create_table,
    drop_stage,
    merge,
    migrate_table,
    purge_tombstones,
)
from warehouse.targets.states import States

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.records import Load, State, TableName
    from warehouse.targets.connection import Connection


_PURGE_SECONDS = 3600.0  # between two purges of a table


class Loader:
    """Loads tables of one warehouse."""

    def __init__(
        self, connection: Connection, state_schema: str, form: Form = CURRENT, deleted_days: float = 0.0
    ) -> None:
        """deleted_days: how long the keys of deleted rows are kept; 0 for always."""
        self.connection = connection
        self.form = form
        self.state_schema = state_schema
        self.states = States(connection, state_schema)
        self.deleted_days = deleted_days
        self._purged: dict[TableName, float] = {}

    def of_form(self, form: Form) -> Loader:
        """A loader of tables of a form, on the same connection."""
        return self if form == self.form else Loader(self.connection, self.state_schema, form, self.deleted_days)

    def prepare(self) -> None:
        """Make the table of the positions, if it is not there. CdcError."""
        self.states.prepare()

    def read_state(self, table: TableName) -> State | None:
        """The state of a table; None if it was never loaded. CdcError."""
        found = self.states.read(table)
        reach(WarehousePoint.STATE_READ)
        return found

    def load(self, load: Load) -> None:
        """LoadTakenError if another loader was faster. CdcError."""
        check_offsets(load)
        connection = self.connection
        with connection.transaction(load.table):
            self._claim(load)
            reach(WarehousePoint.STATE_CLAIMED)
            for statement in table_statements(load, self.form, connection):
                connection.run(statement)
            reach(WarehousePoint.TABLE_MIGRATED)
            if load.rows or load.objects:
                self._merge(load)
        reach(WarehousePoint.LOAD_COMMITTED)

    def _claim(self, load: Load) -> None:
        if load.before is None:
            is_mine = self.states.insert(load.table, load.after)
        else:
            is_mine = self.states.claim(load.table, load.after, load.before.version)
        if not is_mine:
            raise LoadTakenError(str(load.table))

    def _merge(self, load: Load) -> None:
        connection, columns, form = self.connection, load.after.columns, self.form
        if load.objects:
            stage_objects(connection, load.objects, columns, form)
        else:
            connection.run(create_stage(own_columns(form), columns, connection.dialect))
            for rows in load.rows:
                connection.stage(STAGE, staged_columns(rows, columns, form, connection.dialect))
        reach(WarehousePoint.ROWS_STAGED)
        for statement in merge(load.table, columns, form, connection.dialect):
            connection.run(statement)
        connection.run(drop_stage())
        if self.deleted_days and form.has_tombstones and self._is_purge_due(load.table):
            connection.run(purge_tombstones(load.table, self.deleted_days, connection.dialect))
        reach(WarehousePoint.ROWS_MERGED)

    def _is_purge_due(self, table: TableName) -> bool:
        now = time.monotonic()
        if now - self._purged.get(table, -_PURGE_SECONDS) < _PURGE_SECONDS:
            return False
        self._purged[table] = now
        return True


def check_offsets(load: Load) -> None:
    """CdcError unless the load begins where the table ends."""
    known = {} if load.before is None else load.before.offsets
    if load.before is not None and load.before.topic_id != load.after.topic_id:
        raise state_foreign(load.table, f"is of a topic {load.before.topic} that was deleted and created again")
    for partition, start in load.starts.items():
        if partition in known and known[partition] != start:
            raise offsets_differ(load.table, load.after.topic, partition, known[partition], start)
    for partition, offset in known.items():
        if load.after.offsets.get(partition, -1) < offset:
            found = load.after.offsets.get(partition, 0)
            raise offsets_differ(load.table, load.after.topic, partition, offset, found)


def table_statements(load: Load, form: Form, connection: Connection) -> Iterator[str]:
    """What makes the table as the load needs it."""
    if load.before is None:
        columns, dialect = load.after.columns, connection.dialect
        yield from create_table(load.table, columns, form, dialect, is_indexed=connection.is_indexed)
    else:
        steps = migration(load.before.columns, load.after.columns)
        yield from migrate_table(load.table, steps, connection.dialect)
    yield from (comment_on(load.table, column, text) for column, text in load.comments.items())
