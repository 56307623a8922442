"""The schemas for decoding mutations: given ones, and those that the commit log itself has."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from cassandra_storage.commands.commitlog.learned import LearnedSchema
from cassandra_storage.formats.rows.deletion import NO_TIMESTAMP
from cassandra_storage.formats.schema.schema_keyspace import KEYSPACE, SCHEMA_TABLES
from cassandra_storage.formats.schema.tables import DroppedColumn, TableMetadata

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cassandra_storage.formats.rows.partition import PartitionUpdate


class Schemas:
    """`tables`: the tables known so far, by the 16 bytes of the id. A table stays known after its DROP. Cells of
    dropped columns are read too: the tool shows the content of the log, not the result of a query.
    """

    def __init__(self, from_file: Iterable[TableMetadata] = ()) -> None:
        self._learned = LearnedSchema()
        self.tables: dict[bytes, TableMetadata] = dict(SCHEMA_TABLES)
        for table in from_file:
            self._add(table)

    def learn(self, updates: Iterable[PartitionUpdate]) -> None:
        """Apply the updates of a mutation. Only those of system_schema matter."""
        for table in self._learned.apply(update for update in updates if update.table.keyspace == KEYSPACE).values():
            if table.keyspace != KEYSPACE:
                self._add(table)

    def _add(self, table: TableMetadata) -> None:
        """Replace an older schema. Its columns stay readable, and so do the cells of dropped columns."""
        dropped = {name: replace(column, dropped_time=NO_TIMESTAMP) for name, column in table.dropped_columns.items()}
        older = self.tables.get(table.id.bytes)
        if older is not None:
            current = {column.name for column in table.columns}
            dropped = {**older.dropped_columns, **dropped}
            for column in older.static_columns + older.regular_columns:
                if column.name not in current:  # with its former type: DROP turns a user type into a tuple
                    dropped[column.name] = DroppedColumn(column, NO_TIMESTAMP)
        self.tables[table.id.bytes] = replace(table, dropped_columns=MappingProxyType(dropped))
