"""The schemas for decoding mutations: from a file and from the commit log itself."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cassandra_commitlog.learned import LearnedSchema
from cassandra_storage.deletion import NO_TIMESTAMP
from cassandra_storage.schema import DroppedColumn, TableMetadata
from cassandra_storage.schema_keyspace import KEYSPACE, SCHEMA_TABLES
from cdc_messages import tables as table_messages
from cdc_messages.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cassandra_storage.partition import PartitionUpdate


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


def read_schema_file(path: Path) -> list[TableMetadata]:
    """The tables of a publisher's schema.json, or of values of the topic `<prefix>.tables`, one per line. Values of
    other kinds are skipped.

    ValueError if the file is neither, OSError if it cannot be read.
    """
    content = path.read_text()
    try:
        return [table_messages.from_json(message) for message in _messages(content)]
    except (KeyError, TypeError, AttributeError, MessageError) as error:
        raise ValueError(f"neither a publisher's schema.json nor messages of the tables topic: {error}") from error


def _messages(content: str) -> list[bytes]:
    try:
        value: dict[str, Any] = json.loads(content)
    except ValueError:
        return [line.encode() for line in content.splitlines() if "table" in (json.loads(line or "null") or ())]
    if "tables" in value:
        return [entry["table"].encode() for entry in value["tables"]]
    return [content.encode()]
