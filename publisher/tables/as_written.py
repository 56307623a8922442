"""The tables as mutations were written with them: with columns whose type system_schema no longer shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.rows.readings import Readings
from cassandra_storage.formats.versions import VERSION_3014
from publisher.tables.published_table import make_published

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassandra_storage.formats.rows.readings import WrittenAs
    from cassandra_storage.formats.schema.tables import TableMetadata
    from publisher.tables.published_table import PublishedTable


class TablesAsWritten:
    """Chooses the tables that a mutation is decoded with."""

    def __init__(self) -> None:
        self._tables: Mapping[bytes, TableMetadata] = {}
        self._readings = Readings({}, {})
        self._in_doubt: frozenset[bytes] = frozenset()
        # by the identity of the table that `tables_for` has returned
        self._published: dict[int, PublishedTable] = {}

    def set_tables(
        self, tables: Mapping[bytes, TableMetadata], doubts: Mapping[bytes, Mapping[str, WrittenAs]]
    ) -> None:
        """Take the tables of now. `doubts`: the columns whose cells may be of another type than the schema shows."""
        self._tables = tables
        self._readings = Readings(tables, doubts)
        self._in_doubt = frozenset(doubts)
        self._published = {}

    def in_doubt(self, messaging_version: int) -> frozenset[bytes]:
        """The tables whose updates may have columns whose type system_schema no longer shows."""
        return self._in_doubt if messaging_version <= VERSION_3014 else frozenset()  # only 3.11 drops such columns

    def tables_for(self, mutation: bytes, messaging_version: int) -> Mapping[bytes, TableMetadata]:
        """The tables to decode a mutation with: all known ones, except for those that it has with columns whose
        type system_schema no longer shows. FormatError: see Readings.find_tables.
        """
        if not self.in_doubt(messaging_version) or not self._readings.concern(mutation):
            return self._tables
        return {**self._tables, **self._readings.find_tables(mutation, messaging_version)}

    def published_as(self, table: TableMetadata, known: PublishedTable) -> PublishedTable:
        """The published table that `tables_for` has returned. `known`: the table as the schema shows it."""
        if table is known.table:
            return known
        if id(table) not in self._published:
            self._published[id(table)] = make_published(table, known.needs_snapshot_since, known.truncated_at)
        return self._published[id(table)]
