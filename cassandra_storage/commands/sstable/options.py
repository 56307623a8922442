"""The options that all commands of cassandra-sstable share, and the SSTables that they select."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cassandra_storage.commands.sstable.schemas import Schemas, with_dropped
from cassandra_storage.commands.terminal_progress import Progress
from cassandra_storage.files.schema_file import SchemaFiles
from cassandra_storage.files.sstables import SSTable, find_sstables, read_statistics
from cassandra_storage.files.table_sstables import TableSSTables
from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.sstable.header import is_index

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from cassandra_storage.files.sstables import SSTableFile
    from cassandra_storage.formats.schema.tables import TableMetadata

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_FOLDER_OR_FILE = click.Path(exists=True, path_type=Path)
_SHOWN_EVERY = 256  # rows


def _files(_context: click.Context, _parameter: click.Parameter, paths: tuple[Path, ...]) -> list[SSTableFile]:
    try:
        found = [file for path in paths for file in find_sstables(path)]
    except (FormatError, OSError) as error:
        raise click.BadParameter(_words(error)) from None
    if not found:
        raise click.BadParameter("no SSTable found (<version>-<id>-<format>-Data.db)")
    return list(dict.fromkeys(found))


def _is_of_index(file: SSTableFile) -> bool:
    """Return whether the SSTable belongs to a secondary index. One whose header cannot be read is refused where it is
    read.
    """
    if file.index_name is not None:
        return True
    try:
        return is_index(read_statistics(file).header)
    except (FormatError, OSError):
        return False


def _words(error: FormatError | OSError) -> str:
    return f"{error.filename} cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)


def _tables(_context: click.Context, _parameter: click.Parameter, paths: tuple[Path, ...]) -> SchemaFiles:
    found = SchemaFiles()
    for path in paths:
        try:
            found.read(path)
        except FormatError as error:
            raise click.BadParameter(str(error)) from None
    return found


def sstable_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the shared options to a command, whose first parameter is then an SSTableInput."""

    @click.argument("files", type=_FOLDER_OR_FILE, nargs=-1, required=True, metavar="PATH...", callback=_files)
    @click.option(
        "--schema",
        "tables",
        type=_FILE,
        metavar="FILE",
        multiple=True,
        callback=_tables,
        help="CQL (schema.cql of a snapshot, DESCRIBE), or a publisher's schema.json; may be repeated.",
    )
    @click.option(
        "--data",
        "data_folders",
        type=_FOLDER,
        metavar="FOLDER",
        multiple=True,
        help="A data directory of the node, whose system_schema has the tables.  [default: the SSTable's own]",
    )
    @functools.wraps(command)
    def with_sstables(
        *,
        files: list[SSTableFile],
        tables: SchemaFiles,
        data_folders: tuple[Path, ...],
        **others: Any,  # noqa: ANN401  the command's own
    ) -> None:
        try:
            schemas = Schemas(tables, data_folders, files)
        except (FormatError, OSError) as error:
            raise click.BadParameter(_words(error), param_hint="--data") from None
        command(SSTableInput(files, schemas), **others)

    return with_sstables


class SSTableInput:
    """The input of a command, SSTable by SSTable."""

    def __init__(self, files: list[SSTableFile], schemas: Schemas) -> None:
        self.files = files
        self._schemas = schemas
        self._shown: dict[int, tuple[TableMetadata, TableMetadata]] = {}
        self._progress = Progress()
        self._rows = 0

    def open(self, file: SSTableFile) -> SSTable:
        """Cells of dropped columns are read too, and an index under its own header. FormatError, OSError."""
        table = self._schemas.table_of(file)
        if table is None or is_index(read_statistics(file).header):
            return SSTable(file)
        return SSTable(file, self._shown.setdefault(id(table), (table, with_dropped(table)))[1])

    def tables(self) -> list[TableSSTables]:
        """The SSTables by table, of whatever directories, with the schema of the first. FormatError, also if a table is
        not known; DamagedTableError; OSError.
        """
        files: dict[tuple[str, str, UUID], tuple[TableMetadata, list[SSTableFile]]] = {}
        for file in self.files:
            keyspace, name, _ = file.table_name
            if _is_of_index(file):
                index = "a secondary index" if file.index_name is None else f"the secondary index {file.index_name}"
                reason = f"{index} of {keyspace}.{name} is no table: dump and verify read it"
                raise FormatError(reason, segment=str(file.data_path))
            table = self._schemas.table_of(file)
            if table is None:
                raise FormatError(
                    f"no schema has the table that its folders name ({keyspace}.{name}): keep the folders "
                    "KEYSPACE/TABLE-ID/, and name the table's --schema",
                    segment=str(file.data_path),
                )
            files.setdefault((table.keyspace, table.name, table.id), (table, []))[1].append(file)
        return [TableSSTables(table, of_table) for table, of_table in files.values()]

    def step_merged(self, sstables: TableSSTables) -> None:
        """Show how far a merged run is; call it for each row."""
        self._rows += 1
        if not self._rows % _SHOWN_EVERY:
            self._progress.show(f"{sstables.table.qualified_name}, {self._rows:,} rows")

    def step(self, sstable: SSTable) -> None:
        """Show how far the run is; call it for each row."""
        self._rows += 1
        if not self._rows % _SHOWN_EVERY:
            number = self.files.index(sstable.file) + 1
            done = sstable.position / max(sstable.data.length, 1)
            self._progress.show(f"SSTable {number} of {len(self.files)}, {done:.0%} of it, {self._rows:,} rows")

    def clear_progress(self) -> None:
        """Call it before other output to the terminal."""
        self._progress.clear()

    def hide_progress(self) -> None:
        """The output goes to the terminal."""
        self._progress = Progress(is_shown=False)
