"""Table schemas learned from the commit log: CREATE, ALTER and DROP are mutations of the tables of system_schema.

A table is known after a mutation with its complete schema: its CREATE, or the schema that a node writes when it starts
or pulls it from another node. An ALTER contains only the changes, so it does not make an unknown table known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.merge.schema_partitions import KINDS, KeyspaceRows, clustering_text
from cassandra_storage.formats.rows.row import Cell
from cassandra_storage.formats.schema.schema_keyspace import system_table_id

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from cassandra_storage.formats.rows.partition import PartitionUpdate
    from cassandra_storage.formats.schema.tables import TableMetadata

_YOUNG_MICROSECONDS = 60_000_000  # a table's id is made a moment before its CREATE's timestamp
_UUID_EPOCH = 0x01B21DD213814000  # 1970-01-01 in version 1 UUIDs' unit, 100 ns since 1582-10-15


class LearnedSchema:
    """The schema in the mutations so far, merged as Cassandra merges them."""

    def __init__(self) -> None:
        self._keyspaces: dict[str, KeyspaceRows] = {}
        self._whole: set[UUID] = set()

    def apply(self, updates: Iterable[PartitionUpdate]) -> dict[bytes, TableMetadata]:
        """Apply the updates of one mutation of system_schema. Returns the tables that may have changed, by id."""
        mutation = {update.table.name: update for update in updates if update.table.name in KINDS}
        if not mutation:
            return {}
        name = next(iter(mutation.values())).partition_key.decode()
        keyspace = self._keyspaces.setdefault(name, KeyspaceRows(name))
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


def _holds_all_of(table: TableMetadata, columns: PartitionUpdate) -> bool:
    """Return whether the columns of a mutation are those of a CREATE. An ALTER has only the changed columns. For a key
    it has a new name, which deletes the old one, or a mask, of one column only.
    """
    rows = [row for row in columns.rows if clustering_text(row.clustering) == table.name]
    if any(not row.columns for row in rows):
        return False
    names = {(row.clustering[1] or b"").decode() for row in rows}
    if any(column.name not in names for column in table.partition_key + table.clustering):
        return False
    if len(names) > 1 or table.id == system_table_id(table.keyspace, table.name):
        return True
    written = max(cell.timestamp for cell in rows[0].columns.values() if isinstance(cell, Cell))
    return table.id.version == 1 and abs((table.id.time - _UUID_EPOCH) // 10 - written) < _YOUNG_MICROSECONDS
