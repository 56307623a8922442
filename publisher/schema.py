"""The tables of the node, followed through system_schema and remembered in `schema.json`.

A table stays known after it was dropped, and through a restart without the node's help: its mutations may still be in
the log. Of a table that was altered the newest schema is enough: it reads older updates by its dropped columns, whose
types it tells (of one kind of type, with_user_types does). Keys and user types' fields are not named in updates, and
Cassandra alters no type that is serialized otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from time import sleep, time_ns
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import structlog

from cassandra_storage.dropped_columns import with_user_types
from cassandra_storage.errors import FormatError
from cassandra_storage.schema import TableMetadata
from cassandra_storage.schema_rows import tables_from_rows
from cdc_messages import tables as table_messages
from cdc_messages.errors import MessageError
from cdc_program.errors import CdcError, Code
from publisher import state_files
from publisher.selection import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from uuid import UUID

    from publisher.selection import Selection

log = structlog.get_logger(__name__)

# A question to the node in CQL and the rows of the answer; CdcError if it does not answer.
Ask: TypeAlias = Callable[[str], list[dict[str, Any]]]

SCHEMA_TABLES = ("tables", "columns", "types", "views")
# Each of these tables' key, and the column that every ALTER writes.
ALTERED = {"tables": ("table_name", "id"), "views": ("view_name", "id"), "types": ("type_name", "field_types")}
VERSION_QUERY = "SELECT schema_version FROM system.local WHERE key = 'local'"
_TRIES, _RETRY_SECONDS = 50, 0.1  # of a schema that is not understood


class PublishedTable(NamedTuple):
    """A table with `cdc = true`: the bytes of its id, the digest of its schema, and since when (µs) it needs a snapshot
    because its `cdc` was off before (0: it needs none).
    """

    table: TableMetadata
    id: bytes
    digest: bytes
    needs_snapshot_since: int = 0


class KnownTables(NamedTuple):
    """What a mutation is read with. `tables`: all that are known, by the 16 bytes of the id; `published`: those of
    them whose updates are sent; `filler_ids`: the filler's own, which are not; `ignored`: the others; `excluded`: those
    of these that have `cdc = true` and are left out by the settings.
    """

    tables: Mapping[bytes, TableMetadata]
    published: Mapping[bytes, PublishedTable]
    filler_ids: AbstractSet[bytes]
    ignored: AbstractSet[bytes]
    excluded: AbstractSet[bytes]


class Schema:
    """The node's tables and those that it had: see KnownTables for `tables`, `published`, `filler_ids`, `ignored`,
    `excluded`.
    """

    def __init__(self, file: Path, ask: Ask, filler: tuple[str, str], selection: Selection = EVERYTHING) -> None:
        self._file = file
        self._ask = ask
        self._filler = filler
        self._selection = selection
        self._version: UUID | None = None
        self._current: set[bytes] = set()
        self.tables: dict[bytes, TableMetadata] = {}
        self.published: dict[bytes, PublishedTable] = {}
        self.filler_ids: set[bytes] = set()
        self.ignored: set[bytes] = set()
        self.excluded: set[bytes] = set()
        self._gone: set[bytes] = set()
        self._marks: dict[bytes, int] = {}

    def known_before_drops(self) -> KnownTables | None:
        """By which a mutation may be read that the tables as they are do not fit; None if there is no other way."""
        read_otherwise = {
            table_id: other for table_id, table in self.tables.items() if (other := with_user_types(table)) is not None
        }
        if not read_otherwise:
            return None
        published = {table_id: _published(table) for table_id, table in read_otherwise.items()}
        return KnownTables(
            {**self.tables, **read_otherwise},
            {table_id: published.get(table_id, table) for table_id, table in self.published.items()},
            self.filler_ids,
            self.ignored,
            self.excluded,
        )

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
            self._marks = {bytes.fromhex(table): int(since) for table, since in stored.get("marks", {}).items()}
            excluded = {bytes.fromhex(table) for table in stored.get("excluded", ())}
        except (KeyError, TypeError, ValueError, AttributeError, MessageError) as error:
            raise CdcError(
                Code.POSITION_FILE,
                f"The schema history {self._file} is damaged.",
                "Restore it or remove it: without it, mutations of tables that were dropped cannot be read.",
            ) from error
        known = {table.id.bytes: table for table in tables}
        for table_id in excluded & known.keys():
            if self._takes(known[table_id]):
                self._mark(known[table_id], time_ns() // 1000)
        self._take(known)
        if self.excluded != excluded:
            self._save()

    def refresh(self) -> bool:
        """Read the node's schema if its version is another than the one last read; True if a table changed.

        What was durable in the log before this is called can be read with what is known after it, and a table whose
        `cdc` was switched on before it is published from its first update on.

        A node writes the tables of system_schema one after the other, and its new version behind them: half a change
        may be read under the old version, and is read again.
        """
        has_changed, tries = False, _TRIES
        version = self._ask_version()
        while version != self._version:
            try:
                current = self._read()
                before, version = version, self._ask_version()
            except FormatError as error:
                tries -= 1
                if not tries:
                    raise _unreadable(error) from error
                sleep(_RETRY_SECONDS)
                version = self._ask_version()
                continue
            if version == before:
                self._version = version
                has_changed = self._merge(current)
        return has_changed

    def current(self) -> list[PublishedTable]:
        """The published tables that were on the node when it was last asked."""
        return [table for table_id, table in self.published.items() if table_id in self._current]

    def left_out(self) -> list[str]:
        """The names of the tables on the node that have `cdc = true` and are not published, as the settings say."""
        return sorted(self.tables[table_id].qualified_name for table_id in self.excluded & self._current)

    def forget_version(self) -> None:
        """Make the next refresh read the schema whatever its version: a mutation did not fit."""
        self._version = None

    def ignore(self, table_id: bytes) -> None:
        """Pass over a table that the node does not have any more, and that was gone before it was ever seen."""
        self._gone.add(table_id)
        self.ignored.add(table_id)

    def _ask_version(self) -> UUID:
        version: UUID = self._ask(VERSION_QUERY)[0]["schema_version"]
        return version

    def _read(self) -> dict[bytes, TableMetadata]:
        rows = {name: self._ask(f"SELECT * FROM system_schema.{name}") for name in SCHEMA_TABLES}  # noqa: S608 - ours
        rows["dropped_columns"] = self._ask(_dropped_columns_query(rows["columns"]))
        for name, (key, written) in ALTERED.items():
            altered = self._ask(
                f"SELECT keyspace_name, {key}, writetime({written}) AS altered_at FROM system_schema.{name}"  # noqa: S608
            )
            times = {(row["keyspace_name"], row[key]): row["altered_at"] for row in altered}
            rows[name] = [{**row, "altered_at": times.get((row["keyspace_name"], row[key]), 0)} for row in rows[name]]
        return {table_id.bytes: table for table_id, table in tables_from_rows(**rows).items()}

    def _merge(self, current: dict[bytes, TableMetadata]) -> bool:
        """Keep what is on the node, and what was."""
        self._current = set(current)
        for table_id, table in current.items():
            self._follow_cdc(self.tables.get(table_id), table)
        tables = self.tables | current
        if tables == self.tables:
            return False
        self._take(tables)
        self._save()
        return True

    def _save(self) -> None:
        entries = [
            {"cdc": table.cdc, "table": table_messages.to_json(table).decode()} for table in self.tables.values()
        ]
        marks = {table_id.hex(): since for table_id, since in self._marks.items()}
        excluded = sorted(table_id.hex() for table_id in self.excluded)
        state_files.write(self._file, {"tables": entries, "marks": marks, "excluded": excluded})

    def _follow_cdc(self, before: TableMetadata | None, table: TableMetadata) -> None:
        """Say what happens to a table's changes, and remember a hole in them."""
        is_off = before is not None and not before.cdc
        if table.cdc and not _is_publishable(table) and (before is None or is_off):
            log.warning("table is not published", code=Code.TABLE_NOT_PUBLISHED.text, table=table.qualified_name)
        elif is_off and table.cdc:
            self._mark(table, table.altered_at)
        elif before is not None and before.cdc and not table.cdc:
            log.warning("cdc was switched off", code=Code.TABLE_CDC_DISABLED.text, table=table.qualified_name)

    def _mark(self, table: TableMetadata, since: int) -> None:
        self._marks[table.id.bytes] = since
        log.warning("table needs a snapshot", code=Code.NEEDS_SNAPSHOT.text, table=table.qualified_name)

    def _takes(self, table: TableMetadata) -> bool:
        return self._selection.takes(table.keyspace, table.name)

    def _take(self, tables: dict[bytes, TableMetadata]) -> None:
        self.tables = tables
        self.filler_ids = {
            table_id for table_id, table in tables.items() if (table.keyspace, table.name) == self._filler
        }
        tracked = {
            table_id: table
            for table_id, table in tables.items()
            if table.cdc and _is_publishable(table) and table_id not in self.filler_ids
        }
        self.excluded = {table_id for table_id, table in tracked.items() if not self._takes(table)}
        published = {
            table_id: _published(table, self._marks.get(table_id, 0))
            for table_id, table in tracked.items()
            if table_id not in self.excluded
        }
        # One object for each state of a table: what is unchanged stays the same.
        self.published = {
            table_id: known if (known := self.published.get(table_id)) == table else table
            for table_id, table in published.items()
        }
        self.ignored = (tables.keys() | self._gone) - self.published.keys() - self.filler_ids


def _published(table: TableMetadata, needs_snapshot_since: int = 0) -> PublishedTable:
    digest = table_messages.digest(table_messages.canonical(table))
    return PublishedTable(table, table.id.bytes, digest, needs_snapshot_since)


def _is_publishable(table: TableMetadata) -> bool:
    """Views follow from their tables; Thrift's super column families cannot be read by CQL's rules."""
    return not table.is_view and "super" not in table.flags


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
