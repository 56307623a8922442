"""The tables of SSTables: given ones, those of a snapshot's schema.cql, and those of a node's own system_schema."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from cassandra_files.sstables import SSTable, find_sstables
from cassandra_storage.cql_schema import parse_schema
from cassandra_storage.deletion import NO_TIMESTAMP
from cassandra_storage.errors import FormatError
from cassandra_storage.partition import PartitionUpdate
from cassandra_storage.rows import Row
from cassandra_storage.schema_keyspace import KEYSPACE, SCHEMA_TABLES
from cassandra_storage.schema_partitions import KINDS, KeyspaceRows
from cdc_messages.schema_file import read_schema_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from uuid import UUID

    from cassandra_files.sstables import SSTableFile
    from cassandra_storage.schema import TableMetadata

SNAPSHOT_SCHEMA = "schema.cql"


class Schemas:
    """Finds the table of an SSTable by its id, otherwise by its name."""

    def __init__(self, given: Iterable[TableMetadata] = (), data_folders: Iterable[Path] = ()) -> None:
        self._given = _Tables(given)
        self._known: dict[Path, _Tables] = {}
        self._data = _Tables(table for folder in data_folders for table in read_data_folder(folder))

    def table_of(self, file: SSTableFile) -> TableMetadata | None:
        """Return the file's table from --schema, a schema.cql beside the file, the given data directories, or the
        file's own data directory; None if none has it. FormatError if one of these cannot be read.
        """
        if file.table_name[0] == KEYSPACE and file.table_name[2] is not None:
            return SCHEMA_TABLES.get(file.table_name[2].bytes)
        found = self._given.find(file) or self._beside(file) or self._data.find(file)
        return found or self._of_node(file)

    def _beside(self, file: SSTableFile) -> TableMetadata | None:
        path = file.folder / SNAPSHOT_SCHEMA
        if path not in self._known:
            self._known[path] = _Tables(read_file(path) if path.exists() else ())
        return self._known[path].find(file)

    def _of_node(self, file: SSTableFile) -> TableMetadata | None:
        """Return the file's table from the system_schema of the data directory that contains the file."""
        for folder in file.folder.resolve().parents:
            if (folder / KEYSPACE).is_dir():
                if folder not in self._known:
                    self._known[folder] = _Tables(read_data_folder(folder))
                return self._known[folder].find(file)
        return None


class _Tables:
    def __init__(self, tables: Iterable[TableMetadata]) -> None:
        self._by_id: dict[UUID, TableMetadata] = {}
        self._by_name: dict[tuple[str, str], TableMetadata] = {}
        for table in tables:
            if table.id.int:
                self._by_id[table.id] = table
            else:
                self._by_name[table.keyspace, table.name] = table

    def find(self, file: SSTableFile) -> TableMetadata | None:
        keyspace, name, table_id = file.table_name
        if table_id in self._by_id:
            return self._by_id[table_id]
        return self._by_name.get((keyspace, name))


def with_dropped(table: TableMetadata) -> TableMetadata:
    """The table with which no cell is left out: what a file has, not the result of a query."""
    dropped = {name: replace(each, dropped_time=NO_TIMESTAMP) for name, each in table.dropped_columns.items()}
    return replace(table, dropped_columns=MappingProxyType(dropped))


def read_file(path: Path) -> list[TableMetadata]:
    """The tables of a file of CQL, of a publisher's schema.json, or of messages of the tables topic. FormatError names
    the file, OSError if it cannot be read.
    """
    try:
        text = path.read_text("utf-8")
        return read_schema_file(path) if text.lstrip().startswith("{") else parse_schema(text)
    except FormatError as error:
        raise FormatError(error.reason, position=error.position, segment=path.name) from None
    except ValueError as error:
        raise FormatError(str(error), segment=path.name) from None


def read_data_folder(folder: Path) -> list[TableMetadata]:
    """The tables and views in the SSTables of system_schema under a node's data directory. FormatError, OSError."""
    if not (folder / KEYSPACE).is_dir():
        raise FormatError(f"no data directory of a node: it has no {KEYSPACE}", segment=folder.name)
    keyspaces: dict[bytes, KeyspaceRows] = {}
    for file in find_sstables(folder / KEYSPACE):
        table_id = file.table_name[2]
        table = None if table_id is None else SCHEMA_TABLES.get(table_id.bytes)
        if table is None or table.name not in KINDS:
            continue
        with SSTable(file, table) as sstable:
            for partition in sstable.partitions():
                rows = tuple(each for each in sstable.rows() if isinstance(each, Row))
                update = PartitionUpdate(table, partition.key, partition.deletion, None, rows)
                keyspaces.setdefault(partition.key, KeyspaceRows(partition.key.decode())).merge(update)
    tables = (keyspace.table(name) for keyspace in keyspaces.values() for name in keyspace.names())
    return [table for table in tables if table is not None]
