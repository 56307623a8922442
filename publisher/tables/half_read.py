"""Tables that cannot be read now and could be before, or are new: the node may just be writing what it says of them."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from publisher.tables.system_schema import NodeTables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassandra_storage.formats.schema.schema_rows import UnreadableTable
    from cassandra_storage.formats.schema.tables import TableMetadata

HALF_READ_SECONDS = 1.0


class HalfRead:
    """A table is in doubt for HALF_READ_SECONDS. It stays as it was during this time, and all others are followed."""

    def __init__(self) -> None:
        self._since: dict[bytes, tuple[UnreadableTable, float]] = {}

    @property
    def is_any(self) -> bool:
        """Return whether a table is in doubt: the schema is to be read again."""
        return bool(self._since)

    def settle(
        self, read: NodeTables, known: Mapping[bytes, TableMetadata], unreadable: Mapping[bytes, UnreadableTable]
    ) -> NodeTables:
        """Return the tables that were read, with those in doubt as they are `known`, or `unreadable` for another
        reason. New ones in doubt are left out.
        """
        now, before = monotonic(), self._since
        self._since = {}
        for table_id, table in read.unreadable.items():
            seen, since = before.get(table_id, (table, now))
            since = since if seen == table else now
            if unreadable.get(table_id) != table and now - since < HALF_READ_SECONDS:
                self._since[table_id] = (table, since)
        in_doubt = self._since.keys()
        tables = {table_id: known[table_id] for table_id in in_doubt - unreadable.keys() if table_id in known}
        former = {table_id: unreadable[table_id] for table_id in in_doubt & unreadable.keys()}
        certain = {table_id: table for table_id, table in read.unreadable.items() if table_id not in in_doubt}
        return NodeTables({**read.tables, **tables}, {**certain, **former})
