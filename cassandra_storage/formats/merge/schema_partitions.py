"""Adds up the rows of system_schema: merges them as Cassandra merges them, and reads them as tables
(org.apache.cassandra.schema.SchemaKeyspace.fetchTable).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.merge.reconciliation import RowMerger
from cassandra_storage.formats.rows.deletion import LIVE, DeletionTime
from cassandra_storage.formats.rows.row import Cell
from cassandra_storage.formats.schema.schema_keyspace import SCHEMA_TABLES
from cassandra_storage.formats.schema.schema_rows import tables_from_rows
from cassandra_storage.formats.types.marshal import decode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassandra_storage.formats.rows.clustering import Clustering
    from cassandra_storage.formats.rows.partition import PartitionUpdate
    from cassandra_storage.formats.rows.row import Row
    from cassandra_storage.formats.schema.schema_rows import SchemaRow
    from cassandra_storage.formats.schema.tables import TableMetadata

KINDS = ("tables", "columns", "types", "dropped_columns", "views")
"""The tables of system_schema that describe tables."""


class KeyspaceRows:
    """The rows of one keyspace in each table of system_schema, as its partition has them. Tombstones stay."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._rows: dict[str, dict[Clustering, Row]] = {kind: {} for kind in KINDS}
        self._deletions: defaultdict[str, DeletionTime] = defaultdict(lambda: LIVE)

    def merge(self, update: PartitionUpdate) -> None:
        kind, rows = update.table.name, self._rows[update.table.name]
        if update.deletion.supersedes(self._deletions[kind]):
            self._deletions[kind] = update.deletion
            rows.update({key: _MERGERS[kind].merge((row,), update.deletion) for key, row in rows.items()})
        for row in update.rows:
            present = rows.get(row.clustering)
            versions = (row,) if present is None else (present, row)
            rows[row.clustering] = _MERGERS[kind].merge(versions, self._deletions[kind])

    def names(self) -> list[str]:
        """The tables and views that have a row, dropped ones included."""
        return list(dict.fromkeys(clustering_text(key) for key in [*self._rows["tables"], *self._rows["views"]]))

    def touched_by(self, mutation: Mapping[str, PartitionUpdate]) -> list[str]:
        """The tables that the mutation may change; any table may use a user type."""
        if "types" in mutation:
            return self.names()
        keys = [row.clustering for update in mutation.values() for row in update.rows]
        return list(dict.fromkeys(clustering_text(key) for key in keys))

    def table(self, name: str) -> TableMetadata | None:
        """The table or view with this name, if its schema is known."""
        tables, views = self._described("tables", name), self._described("views", name)
        if not any("id" in row for row in [*tables, *views]):
            return None
        types = [self._decoded("types", row) for row in self._rows["types"].values() if row.columns]
        columns, dropped = self._described("columns", name), self._described("dropped_columns", name)
        try:
            (table,) = tables_from_rows(tables, columns, types, dropped, views).values()
        except FormatError:
            return None  # only a part of it is there: the key or a user type is missing
        return table

    def _described(self, kind: str, name: str) -> list[SchemaRow]:
        rows = self._rows[kind].items()
        return [self._decoded(kind, row) for key, row in rows if row.columns and clustering_text(key) == name]

    def _decoded(self, kind: str, row: Row) -> SchemaRow:
        table = _TABLES[kind]
        values: dict[str, Any] = {"keyspace_name": self.name}
        for column, value in zip(table.clustering, row.clustering, strict=True):
            values[column.name] = decode(column.type, value or b"")
        for column in table.regular_columns:
            cell = row.columns.get(column.name)
            if isinstance(cell, Cell) and not cell.is_tombstone:
                values[column.name] = decode(column.type, cell.value)
        return values


_TABLES = {table.name: table for table in SCHEMA_TABLES.values() if table.name in KINDS}
_MERGERS = {
    name: RowMerger({column.name: column for column in table.regular_columns}, is_counter=False)
    for name, table in _TABLES.items()
}


def clustering_text(clustering: Clustering) -> str:
    """The first value: the name of a table, view or type."""
    return (clustering[0] or b"").decode()
