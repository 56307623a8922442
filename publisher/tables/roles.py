"""Decides what the publisher does with each table that it knows. Pure: no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.schema.tables import TableMetadata
from publisher.tables.per_table import PerTable
from publisher.tables.refusals import refusal

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from cassandra_storage.formats.schema.schema_rows import UnreadableTable
    from publisher.tables.selection import Selection


class Roles(NamedTuple):
    """The tables by what is done with them. Those that are in no other group are ignored."""

    # the tables whose updates are sent
    published: dict[bytes, TableMetadata]
    # the tables with `cdc = true` that the settings exclude
    excluded: set[bytes]
    # the filler's tables
    filler_ids: set[bytes]
    # why tables with `cdc = true` cannot be published
    refusals: dict[bytes, str]


class RoleRules:
    """Assigns the roles, by the filler's table (its keyspace and name) and the tables that the settings select."""

    def __init__(self, filler: tuple[str, str], selection: Selection) -> None:
        self._filler = filler
        self._selection = selection
        self._refused = PerTable(refusal)

    def is_selected(self, table: TableMetadata | UnreadableTable) -> bool:
        """Return whether the settings include the table."""
        return self._selection.includes(table.keyspace, table.name)

    def is_filler(self, table: TableMetadata | UnreadableTable) -> bool:
        """Return whether the table is the filler's."""
        return (table.keyspace, table.name) == self._filler

    def assign(
        self,
        tables: Mapping[bytes, TableMetadata],
        unreadable: Container[bytes],
        switched_off: Container[bytes],
    ) -> Roles:
        """Give each table its role. `switched_off`: tables whose `cdc` was switched off. The log may
        still have their mutations from before that.
        """
        filler_ids = {table_id for table_id, table in tables.items() if self.is_filler(table)}
        reasons = {table_id: self.refusal_of(table, unreadable) for table_id, table in tables.items()}
        refusals = {table_id: reason for table_id, reason in reasons.items() if reason}
        tracked = {
            table_id: table
            for table_id, table in tables.items()
            if (table.cdc or table_id in switched_off) and table_id not in refusals and table_id not in filler_ids
        }
        excluded = {table_id for table_id, table in tracked.items() if not self.is_selected(table)}
        published = {table_id: table for table_id, table in tracked.items() if table_id not in excluded}
        return Roles(published, excluded, filler_ids, refusals)

    def refusal_of(self, table: TableMetadata, unreadable: Container[bytes]) -> str:
        """Return why a table with `cdc = true` is not published; "" for an unreadable one, which waits instead."""
        return self._refused.of(table) if table.cdc and table.id.bytes not in unreadable else ""
