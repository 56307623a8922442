"""Table schemas learned from the commit log: CREATE, ALTER and DROP are mutations of the tables of system_schema.

A table is known after a mutation with its complete schema: its CREATE, or the schema that a node writes when it starts
or pulls it from another node. An ALTER contains only the changes, so it does not make an unknown table known.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from cassandra_storage.deletion import LIVE, DeletionTime
from cassandra_storage.errors import FormatError
from cassandra_storage.marshal import decode
from cassandra_storage.merge import RowMerger
from cassandra_storage.rows import Cell
from cassandra_storage.schema_keyspace import SCHEMA_TABLES, system_table_id
from cassandra_storage.schema_rows import tables_from_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from cassandra_storage.clustering import Clustering
    from cassandra_storage.partition import PartitionUpdate
    from cassandra_storage.rows import Row
    from cassandra_storage.schema import TableMetadata
    from cassandra_storage.schema_rows import SchemaRow

_KINDS = ("tables", "columns", "types", "dropped_columns", "views")
_YOUNG_MICROSECONDS = 60_000_000  # a table's id is made a moment before its CREATE's timestamp
_UUID_EPOCH = 0x01B21DD213814000  # 1970-01-01 in version 1 UUIDs' unit, 100 ns since 1582-10-15


class LearnedSchema:
    """The schema in the mutations so far, merged as Cassandra merges them."""

    def __init__(self) -> None:
        self._keyspaces: dict[str, _Keyspace] = {}
        self._whole: set[UUID] = set()

    def apply(self, updates: Iterable[PartitionUpdate]) -> dict[bytes, TableMetadata]:
        """Apply the updates of one mutation of system_schema. Returns the tables that may have changed, by id."""
        mutation = {update.table.name: update for update in updates if update.table.name in _KINDS}
        if not mutation:
            return {}
        name = next(iter(mutation.values())).partition_key.decode()
        keyspace = self._keyspaces.setdefault(name, _Keyspace(name))
        for update in mutation.values():
            keyspace.merge(update)
        changed = {}
        for table_name in keyspace.touched_by(mutation):
            table = keyspace.table(table_name)
            if table is None:
                continue
            if "columns" in mutation and _holds_all_of(table, mutation["columns"]):
                self._whole.add(table.id)
            if table.id in self._whole:
                changed[table.id.bytes] = table
        return changed


class _Keyspace:
    """The rows of one partition of each table of system_schema. Tombstones stay: they are not in an sstable yet."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._rows: dict[str, dict[Clustering, Row]] = {kind: {} for kind in _KINDS}
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

    def touched_by(self, mutation: Mapping[str, PartitionUpdate]) -> list[str]:
        """The tables that the mutation may change; any table may use a user type."""
        if "types" in mutation:
            keys = [*self._rows["tables"], *self._rows["views"]]
        else:
            keys = [row.clustering for update in mutation.values() for row in update.rows]
        return list(dict.fromkeys(_text(key) for key in keys))

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
            return None  # the log has only a part of it: the key or a user type is missing
        return table

    def _described(self, kind: str, name: str) -> list[SchemaRow]:
        rows = self._rows[kind].items()
        return [self._decoded(kind, row) for key, row in rows if row.columns and _text(key) == name]

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


_TABLES = {table.name: table for table in SCHEMA_TABLES.values() if table.name in _KINDS}
_MERGERS = {
    name: RowMerger({column.name: column for column in table.regular_columns}, is_counter=False)
    for name, table in _TABLES.items()
}


def _text(clustering: Clustering) -> str:
    return (clustering[0] or b"").decode()


def _holds_all_of(table: TableMetadata, columns: PartitionUpdate) -> bool:
    """Whether the columns of a mutation are those of a CREATE. An ALTER has only the changed columns. For a key it has
    a new name, which deletes the old one, or a mask, of one column only.
    """
    rows = [row for row in columns.rows if _text(row.clustering) == table.name]
    if any(not row.columns for row in rows):
        return False
    names = {(row.clustering[1] or b"").decode() for row in rows}
    if any(column.name not in names for column in table.partition_key + table.clustering):
        return False
    if len(names) > 1 or table.id == system_table_id(table.keyspace, table.name):
        return True
    written = max(cell.timestamp for cell in rows[0].columns.values() if isinstance(cell, Cell))
    return table.id.version == 1 and abs((table.id.time - _UUID_EPOCH) // 10 - written) < _YOUNG_MICROSECONDS
