"""The file `schema.json`: what a publisher knows of its node's tables, also of dropped ones."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, NamedTuple

from cassandra_storage.formats.schema.tables import TableMetadata
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.errors import MessageError
from publisher import state_files
from publisher.tables.cdc_switches import CdcSwitches
from publisher.tables.dropped_columns import DroppedColumns
from publisher.tables.per_table import PerTable
from publisher.tables.row_ends import RowEnds
from publisher.tables.snapshot_marks import SnapshotMarks
from publisher.tables.stored_tables import table_to_json, tables_from_json

if TYPE_CHECKING:
    from pathlib import Path


class TableNotes(NamedTuple):
    """The publisher's notes about the tables, besides their schemas. Each part reads and writes its own JSON."""

    # the tables that need a snapshot
    marks: SnapshotMarks
    # the switches of `cdc`
    switches: CdcSwitches
    # the columns that were dropped
    dropped_columns: DroppedColumns
    # the tables that were truncated or dropped
    row_ends: RowEnds


class StoredSchema(NamedTuple):
    """The tables of a schema file."""

    # The tables by the bytes of their ids.
    tables: dict[bytes, TableMetadata]
    # the tables that the settings excluded
    excluded: AbstractSet[bytes]
    # the tables that are or were published
    were_published: AbstractSet[bytes]


class SchemaFile:
    """Reads and replaces the file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._tables = PerTable(table_to_json)

    def read(self, notes: TableNotes) -> StoredSchema | None:
        """Read the tables, and load the notes. None if there is no file; CdcError POSITION_FILE if it is damaged."""
        stored = state_files.read(self._file)
        if stored is None:
            return None
        try:
            return _read(stored, notes)
        except (KeyError, TypeError, ValueError, AttributeError, MessageError) as error:
            raise CdcError(
                Code.POSITION_FILE,
                f"The schema file {self._file} is damaged.",
                "Restore it. Without it, mutations of dropped tables cannot be decoded, and what was to be sent of a"
                " TRUNCATE, a DROP or a switch of cdc is lost.",
            ) from error

    def write(self, schema: StoredSchema, notes: TableNotes) -> None:
        """Replace the file."""
        state_files.write(
            self._file,
            {
                "tables": [self._tables.of(table) for table in schema.tables.values()],
                **notes.marks.to_json(),
                "excluded": sorted(table_id.hex() for table_id in schema.excluded),
                "were_published": sorted(table_id.hex() for table_id in schema.were_published),
                "switched_off": notes.switches.to_json(),
                "dropped_columns": notes.dropped_columns.to_json(),
                "row_ends": notes.row_ends.to_json(),
            },
        )


def _read(stored: dict[str, Any], notes: TableNotes) -> StoredSchema:
    tables = tables_from_json(stored["tables"])
    notes.marks.load(stored)
    excluded = {bytes.fromhex(table) for table in stored["excluded"]}
    notes.switches.load(stored.get("switched_off", {}))
    notes.dropped_columns.load(stored.get("dropped_columns", {}))
    notes.row_ends.load(stored.get("row_ends"))
    if "were_published" in stored:
        were_published = {bytes.fromhex(table) for table in stored["were_published"]}
    else:  # as far as an earlier build has stored it
        were_published = {table_id for table_id, table in tables.items() if table.cdc} - excluded
    return StoredSchema(tables, excluded, were_published)
