"""Remembers dropped columns whose type may have been a non-frozen user type (Cassandra 3.11).

system_schema shows the type of such a column as a frozen tuple. A publisher that has seen the column before its first
drop knows better. Only the cells before the first drop can be a non-frozen user type's: the column can be added again
only frozen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cassandra_storage.formats.rows.dropped_columns import may_have_been_user_type
from cassandra_storage.formats.rows.readings import WrittenAs
from cassandra_storage.formats.types.marshal import UserType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassandra_storage.formats.schema.tables import TableMetadata


class DroppedColumns:
    """The dropped columns, by table id and name: True if the column was a non-frozen user type before its first drop,
    False if not. A column whose first drop was not followed is absent.
    """

    def __init__(self) -> None:
        self._was_user_type: dict[bytes, dict[str, bool]] = {}

    def note_change(self, before: TableMetadata | None, table: TableMetadata) -> None:
        """Take note of the columns that were dropped since the table was `before`."""
        if before is None:
            return
        columns = {column.name: column for column in before.columns}
        for name in table.dropped_columns.keys() - before.dropped_columns.keys():
            if name in columns:
                column = columns[name]
                was_user_type = isinstance(column.type, UserType) and column.is_complex
                self._was_user_type.setdefault(table.id.bytes, {})[name] = was_user_type

    def doubts(self, tables: Mapping[bytes, TableMetadata]) -> dict[bytes, dict[str, WrittenAs]]:
        """The columns whose cells may be a non-frozen user type's."""
        found = {table_id: self._doubts_of(table) for table_id, table in tables.items() if table.dropped_columns}
        return {table_id: doubts for table_id, doubts in found.items() if doubts}

    def _doubts_of(self, table: TableMetadata) -> dict[str, WrittenAs]:
        known = self._was_user_type.get(table.id.bytes, {})
        alive = {column.name for column in table.columns}
        return {
            name: WrittenAs.CELLS if known.get(name) and name not in alive else WrittenAs.EITHER
            for name, dropped in table.dropped_columns.items()
            if known.get(name, may_have_been_user_type(dropped.column.type))
        }

    def to_json(self) -> dict[str, dict[str, bool]]:
        return {table_id.hex(): dict(columns) for table_id, columns in self._was_user_type.items()}

    def load(self, stored: Mapping[str, Mapping[str, Any]]) -> None:
        """Load to_json's value. ValueError, AttributeError or TypeError if it is damaged."""
        self._was_user_type = {
            bytes.fromhex(table_id): {name: bool(value) for name, value in columns.items()}
            for table_id, columns in stored.items()
        }
