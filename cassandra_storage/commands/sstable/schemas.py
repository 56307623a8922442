"""The tables of SSTables: given ones, those of a snapshot's schema.cql, and those of a node's own system_schema."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.files.schema_file import SchemaFiles
from cassandra_storage.files.sstables import SSTable, find_sstables, read_statistics
from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.merge.schema_partitions import KINDS, KeyspaceRows
from cassandra_storage.formats.rows.deletion import NO_TIMESTAMP
from cassandra_storage.formats.rows.partition import PartitionUpdate
from cassandra_storage.formats.rows.row import Row
from cassandra_storage.formats.schema.cql_schema import CqlSchema, CqlTable
from cassandra_storage.formats.schema.schema_keyspace import KEYSPACE, SCHEMA_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from uuid import UUID

    from cassandra_storage.files.sstables import SSTableFile
    from cassandra_storage.formats.schema.tables import TableMetadata
    from cassandra_storage.formats.sstable.metadata import HeaderComponent

SNAPSHOT_SCHEMA = "schema.cql"


class Schemas:
    """Finds the table of an SSTable by its id, otherwise by its name.

    `given`: tables, or the files of --schema. `files`: the SSTables that are read. Their headers complete a schema that
    lacks user types.
    """

    def __init__(
        self,
        given: Iterable[TableMetadata] | SchemaFiles = (),
        data_folders: Iterable[Path] = (),
        files: Iterable[SSTableFile] = (),
    ) -> None:
        if isinstance(given, SchemaFiles):
            self._given = _Tables(given.tables, given.cql)
        else:
            self._given = _Tables(given)
        self._known: dict[Path, _Tables] = {}
        self._data = _Tables(table for folder in data_folders for table in read_data_folder(folder))
        self._files: defaultdict[tuple[str, str, UUID | None], list[SSTableFile]] = defaultdict(list)
        for file in files:
            self._files[file.table_name].append(file)

    def table_of(self, file: SSTableFile) -> TableMetadata | None:
        """Return the file's table from --schema, a schema.cql beside the file, the given data directories, or the
        file's own data directory; None if none has it, and for an index.

        The first of them that knows all its types is taken. If none does, the headers of the SSTables complete the
        first. FormatError if that is not enough, or if one of these cannot be read.
        """
        if file.index_name is not None:
            return None
        if file.table_name[0] == KEYSPACE and file.table_name[2] is not None:
            return SCHEMA_TABLES.get(file.table_name[2].bytes)
        incomplete: _Incomplete | None = None
        for tables in self._sources(file):
            found = tables.find(file)
            if isinstance(found, _Incomplete):
                incomplete = incomplete or found
            elif found is not None:
                return found
        return None if incomplete is None else incomplete.completed(self._headers(file))

    def _sources(self, file: SSTableFile) -> Iterator[_Tables]:
        yield self._given
        yield self._beside(file)
        yield self._data
        yield self._of_node(file)

    def _headers(self, file: SSTableFile) -> list[HeaderComponent]:
        """The headers of the SSTables of that table that are read; this one's if no others are known."""
        return [read_statistics(sstable).header for sstable in self._files.get(file.table_name) or [file]]

    def _beside(self, file: SSTableFile) -> _Tables:
        path = file.folder / SNAPSHOT_SCHEMA
        if path not in self._known:
            beside = SchemaFiles()
            if path.exists():
                beside.read(path)
            self._known[path] = _Tables(beside.tables, beside.cql)
        return self._known[path]

    def _of_node(self, file: SSTableFile) -> _Tables:
        """The tables of the system_schema of the data directory that contains the file."""
        for folder in file.folder.resolve().parents:
            if (folder / KEYSPACE).is_dir():
                if folder not in self._known:
                    self._known[folder] = _Tables(read_data_folder(folder))
                return self._known[folder]
        return _Tables(())


class _Incomplete(NamedTuple):
    """A table of CQL that has a user type which no CREATE TYPE made."""

    cql: CqlSchema
    table: CqlTable
    error: FormatError

    def completed(self, headers: Iterable[HeaderComponent]) -> TableMetadata:
        """The table with the user types that the headers of its SSTables have. FormatError if one is still unknown."""
        written = list(headers)
        names = {name for header in written for name in header.column_names}
        try:
            return self.cql.completed(self.table, names, [type_ for header in written for type_ in header.types])
        except FormatError:
            raise self.error from None


class _Tables:
    def __init__(self, tables: Iterable[TableMetadata], cql: CqlSchema | None = None) -> None:
        self._by_id: dict[UUID, TableMetadata | _Incomplete] = {}
        self._by_name: dict[tuple[str, str], TableMetadata | _Incomplete] = {}
        for table in tables:
            self._add(table, table.keyspace, table.name, table.id)
        if cql is not None:
            for of in cql.tables:
                self._add(_made(cql, of), *of)

    def _add(self, table: TableMetadata | _Incomplete, keyspace: str, name: str, table_id: UUID) -> None:
        if table_id.int:
            self._by_id[table_id] = table
        else:
            self._by_name[keyspace, name] = table

    def find(self, file: SSTableFile) -> TableMetadata | _Incomplete | None:
        keyspace, name, table_id = file.table_name
        if table_id in self._by_id:
            return self._by_id[table_id]
        return self._by_name.get((keyspace, name))


def _made(cql: CqlSchema, of: CqlTable) -> TableMetadata | _Incomplete:
    try:
        return cql.table(of)
    except FormatError as error:
        return _Incomplete(cql, of, error)


def with_dropped(table: TableMetadata) -> TableMetadata:
    """The table with which no cell is left out: what a file has, not the result of a query."""
    dropped = {
        name: replace(dropped_column, dropped_time=NO_TIMESTAMP)
        for name, dropped_column in table.dropped_columns.items()
    }
    return replace(table, dropped_columns=MappingProxyType(dropped))


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
                rows = tuple(row for row in sstable.rows() if isinstance(row, Row))
                update = PartitionUpdate(table, partition.key, partition.deletion, None, rows)
                keyspaces.setdefault(partition.key, KeyspaceRows(partition.key.decode())).merge(update)
    tables = (keyspace.table(name) for keyspace in keyspaces.values() for name in keyspace.names())
    return [table for table in tables if table is not None]
