"""The tables of the node, followed through system_schema and remembered in `schema.json`.

A table stays known after it was dropped, and through a restart without the node's help: its mutations may still be in
the log. Of a table that was altered the newest schema is enough: it reads older updates by its dropped columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from cassandra_storage.errors import FormatError
from cassandra_storage.schema_rows import tables_from_rows
from cdc_messages import tables as table_messages
from cdc_messages.errors import MessageError
from cdc_program.errors import CdcError, Code
from publisher import state_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from uuid import UUID

    from cassandra_storage.schema import TableMetadata

# A question to the node in CQL and the rows of the answer; CdcError if it does not answer.
Ask: TypeAlias = Callable[[str], list[dict[str, Any]]]

SCHEMA_TABLES = ("tables", "columns", "types", "views")
VERSION_QUERY = "SELECT schema_version FROM system.local WHERE key = 'local'"


class PublishedTable(NamedTuple):
    """A table with `cdc = true`: the bytes of its id, and the digest of its schema."""

    table: TableMetadata
    id: bytes
    digest: bytes


class Schema:
    """What a mutation is read with. `tables`: all that are known, by the 16 bytes of the id; `published`: those of
    them whose updates are sent; `filler_ids`: the filler's own, which are not.
    """

    def __init__(self, file: Path, ask: Ask, filler: tuple[str, str]) -> None:
        self._file = file
        self._ask = ask
        self._filler = filler
        self._version: UUID | None = None
        self._current: set[bytes] = set()
        self.tables: dict[bytes, TableMetadata] = {}
        self.published: dict[bytes, PublishedTable] = {}
        self.filler_ids: set[bytes] = set()
        self.ignored: set[bytes] = set()

    def load(self) -> None:
        """Take what earlier runs have seen."""
        stored = state_files.read(self._file)
        if stored is None:
            return
        try:
            tables = [
                replace(table_messages.from_json(entry["table"].encode()), cdc=bool(entry["cdc"]))
                for entry in stored["tables"]
            ]
        except (KeyError, TypeError, AttributeError, MessageError) as error:
            raise CdcError(
                Code.POSITION_FILE,
                f"The schema history {self._file} is damaged.",
                "Restore it or remove it: without it, mutations of tables that were dropped cannot be read.",
            ) from error
        self._take({table.id.bytes: table for table in tables})

    def refresh(self) -> bool:
        """Read the node's schema if its version is another than the one last read; True if a table changed.

        What was durable in the log before this is called can be read with what is known after it, and a table whose
        `cdc` was switched on before it is published from its first update on.
        """
        has_changed = False
        version = self._ask_version()
        while version != self._version:
            try:
                current = self._read()
                before, version = version, self._ask_version()
            except FormatError as error:
                before, version = version, self._ask_version()
                if version == before:
                    raise _unreadable(error) from error
            if version == before:
                self._version = version
                has_changed = self._merge(current)
        return has_changed

    def current(self) -> list[PublishedTable]:
        """The published tables that were on the node when it was last asked."""
        return [table for table_id, table in self.published.items() if table_id in self._current]

    def forget_version(self) -> None:
        """Make the next refresh read the schema whatever its version: a mutation did not fit."""
        self._version = None

    def _ask_version(self) -> UUID:
        version: UUID = self._ask(VERSION_QUERY)[0]["schema_version"]
        return version

    def _read(self) -> dict[bytes, TableMetadata]:
        rows = {name: self._ask(f"SELECT * FROM system_schema.{name}") for name in SCHEMA_TABLES}  # noqa: S608 - ours
        rows["dropped_columns"] = self._ask(_dropped_columns_query(rows["columns"]))
        return {table_id.bytes: table for table_id, table in tables_from_rows(**rows).items()}

    def _merge(self, current: dict[bytes, TableMetadata]) -> bool:
        """Keep what is on the node, and what was."""
        self._current = set(current)
        tables = self.tables | current
        if tables == self.tables:
            return False
        self._take(tables)
        entries = [
            {"cdc": table.cdc, "table": table_messages.to_json(table).decode()} for table in self.tables.values()
        ]
        state_files.write(self._file, {"tables": entries})
        return True

    def _take(self, tables: dict[bytes, TableMetadata]) -> None:
        self.tables = tables
        self.filler_ids = {
            table_id for table_id, table in tables.items() if (table.keyspace, table.name) == self._filler
        }
        published = {
            table_id: PublishedTable(table, table_id, table_messages.digest(table_messages.canonical(table)))
            for table_id, table in tables.items()
            if table.cdc and table_id not in self.filler_ids
        }
        # One object for each state of a table: what is unchanged stays the same.
        self.published = {
            table_id: known if (known := self.published.get(table_id)) == table else table
            for table_id, table in published.items()
        }
        self.ignored = tables.keys() - self.published.keys() - self.filler_ids


def _dropped_columns_query(columns: Iterable[Mapping[str, Any]]) -> str:
    """Cassandra's own tables have drop times that the driver cannot turn into a datetime; 3.11 has fewer columns."""
    table = ("system_schema", "dropped_columns")
    names = [row["column_name"] for row in columns if (row["keyspace_name"], row["table_name"]) == table]
    chosen = ["toUnixTimestamp(dropped_time) AS dropped_time" if name == "dropped_time" else name for name in names]
    return f"SELECT {', '.join(chosen)} FROM system_schema.dropped_columns"  # noqa: S608 - the schema's own names


def _unreadable(error: FormatError) -> CdcError:
    return CdcError(
        Code.CASSANDRA_QUERY,
        f"The node's system_schema is not understood: {error.reason}.",
        "This build knows Cassandra 3.11 to 5.0; report it with the table's DESCRIBE.",
    )
