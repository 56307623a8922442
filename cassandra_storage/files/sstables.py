"""SSTables as files: those of a directory, and one that is open (org.apache.cassandra.io.sstable: Descriptor,
format.SSTableReader, format.TOCComponent).
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from cassandra_storage.files.sstable_data import open_data
from cassandra_storage.formats.errors import FormatError, UnknownColumnError, UnsupportedError
from cassandra_storage.formats.schema.tables import BINARY_NAMES
from cassandra_storage.formats.sstable.file_name import (
    COMPRESSION_INFO,
    CRC,
    DATA,
    DIGEST,
    STATISTICS,
    TOC,
    Descriptor,
    attached_index,
    parse_name,
    parse_table_folder,
)
from cassandra_storage.formats.sstable.header import is_index, resolve
from cassandra_storage.formats.sstable.metadata import parse_statistics
from cassandra_storage.formats.sstable.reader import SSTableReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from cassandra_storage.files.sstable_data import DataFile
    from cassandra_storage.formats.rows.unfiltered import Unfiltered
    from cassandra_storage.formats.schema.tables import TableMetadata
    from cassandra_storage.formats.sstable.header import SSTableSchema
    from cassandra_storage.formats.sstable.metadata import Statistics
    from cassandra_storage.formats.sstable.reader import Partition

_SUFFIX = f"-{DATA}"
_DERIVED = ("backups", "snapshots")  # Directories: SSTables there are copies
_WINDOW = 1 << 20
_T = TypeVar("_T")


class SSTableFile(NamedTuple):
    """An SSTable in a directory."""

    # The directory of its files.
    folder: Path
    # The part of the names that its files have in common.
    descriptor: Descriptor

    @property
    def data_path(self) -> Path:
        return self.path(DATA)

    def path(self, component: str) -> Path:
        return self.folder / self.descriptor.file_name(component)

    @property
    def table_name(self) -> tuple[str, str, UUID | None]:
        """(keyspace, table, the table's id) as the directories say, those of a snapshot or an index included; without
        an id for a directory of another name.
        """
        folders = [Path(os.path.abspath(self.folder)), *Path(os.path.abspath(self.folder)).parents]  # noqa: PTH100
        for folder in folders:
            named = parse_table_folder(folder.name)
            if named is not None:
                return folder.parent.name, *named
        return "", self.folder.name, None

    @property
    def index_name(self) -> str | None:
        """The secondary index whose directory (`.<index>` in that of its table) this is; None for another directory."""
        name = Path(os.path.abspath(self.folder)).name  # noqa: PTH100
        return name[1:] if name.startswith(".") and len(name) > 1 else None

    def components(self) -> list[str] | None:
        """Return the components that TOC.txt lists; None without a TOC.txt. FormatError if it is not text."""
        try:
            lines = self.path(TOC).read_text("utf-8").splitlines()
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            raise FormatError("not a list of components", position=error.start, segment=self.path(TOC).name) from None
        return [line.strip() for line in lines if line.strip()]

    def missing(self) -> list[str]:
        """The components that reading and verifying need, and that TOC.txt lists and are not there."""
        needed = {DATA, STATISTICS, COMPRESSION_INFO, CRC, DIGEST}
        return [name for name in self.components() or () if name in needed and not self.path(name).exists()]


def list_sstables(folder: Path) -> list[SSTableFile]:
    """The SSTables that lie in this directory itself, older ones first. FormatError or UnsupportedError for a file that
    ends like one and has another name: it must not be left out in silence.
    """
    found = [SSTableFile(folder, parse_name(path.name)[0]) for path in folder.iterdir() if path.name.endswith(_SUFFIX)]
    return sorted(found, key=lambda file: file.descriptor.order)


def find_sstables(path: Path) -> Iterator[SSTableFile]:
    """The SSTable whose Data.db `path` is, or all under a directory: of a table, a keyspace, a node's data, a snapshot.
    Those of indexes, backups and snapshots only if `path` itself is such a directory.

    Errors as list_sstables; OSError if a directory cannot be read.
    """
    if not path.is_dir():
        descriptor, component = parse_name(path.name)
        if component != DATA:
            raise FormatError(_no_data(component), segment=path.name)
        yield SSTableFile(path.parent, descriptor)
        return
    yield from list_sstables(path)
    for folder in sorted(entry for entry in path.iterdir() if entry.is_dir()):
        if folder.name not in _DERIVED and not folder.name.startswith("."):
            yield from find_sstables(folder)


def _no_data(component: str) -> str:
    index = attached_index(component)
    of = "" if index is None else f"the file belongs to the index {index}, which has no rows of its own; "
    return f"{of}name the {DATA} of an SSTable"


class SSTable:
    """A context manager: an open SSTable. `table`: its table if it is known; without one the header tells the columns,
    and has no names for those of the key. The errors are FormatErrors that name the file and the place in it; those of
    rows have the position in the uncompressed data.
    """

    def __init__(self, file: SSTableFile, table: TableMetadata | None = None) -> None:
        self.file = file
        self.statistics = read_statistics(file)
        missing = file.missing()
        if missing:
            raise FormatError(f"{TOC} lists {missing[0]}, which is not there", segment=file.path(missing[0]).name)
        self.schema: SSTableSchema = self._resolve(table)
        self.data: DataFile = open_data(file.folder, file.descriptor)
        self._reader: SSTableReader | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.data.close()

    @property
    def position(self) -> int:
        """Return how far the reader is in the uncompressed data."""
        return 0 if self._reader is None else self._reader.position

    def partitions(self, start: int = 0) -> Iterator[Partition]:
        """The partitions, from the one at `start` in the uncompressed data on. `rows` gives the rows of each."""
        header, form = self.schema.header, self.file.descriptor.format
        reader = SSTableReader(self.data.chunks(start), self.data.length, header, form, start=start)
        self._reader = reader
        return self._named(reader.partitions())

    def rows(self) -> Iterator[Unfiltered]:
        """The rows and range tombstone markers of the partition that `partitions` gave last, one by one."""
        assert self._reader is not None
        return self._named(self._reader.rows())

    def _resolve(self, table: TableMetadata | None) -> SSTableSchema:
        name = self.file.path(STATISTICS).name
        if table is not None and BINARY_NAMES in table.flags:
            raise UnsupportedError(f"{table.qualified_name} has column names that are no text", segment=name)
        try:
            return resolve(self.statistics.header, self.file.descriptor.format, table, self._name())
        except FormatError as error:
            raise _located(error, name) from None

    @property
    def is_index(self) -> bool:
        """Return whether it belongs to a secondary index, by its header."""
        return is_index(self.statistics.header)

    def _name(self) -> tuple[str, str, UUID | None]:
        """The table's name; for an index, which has no id, `<table>.<index>`, as Cassandra names it."""
        keyspace, table, table_id = self.file.table_name
        index = self.file.index_name
        return (keyspace, table, table_id) if index is None else (keyspace, f"{table}.{index}", None)

    def _named(self, source: Iterable[_T]) -> Iterator[_T]:
        """Errors get the name of Data.db."""
        try:
            yield from source
        except FormatError as error:
            raise _located(error, self.file.data_path.name) from None


def read_statistics(file: SSTableFile) -> Statistics:
    """The content of Statistics.db. FormatError with the file's name, OSError."""
    path = file.path(STATISTICS)
    try:
        return parse_statistics(path.read_bytes(), file.descriptor.format)
    except FormatError as error:
        raise _located(error, path.name) from None


def verify_digest(file: SSTableFile) -> None:
    """Compare Data.db with Digest.crc32, if there is one (DataIntegrityMetadata.FileDigestValidator). FormatError."""
    path = file.path(DIGEST)
    try:
        stored = path.read_bytes().strip()
    except FileNotFoundError:
        return
    if not stored.isdigit():
        raise FormatError("not a checksum", position=0, segment=path.name)
    found = 0
    with file.data_path.open("rb") as data:
        while window := data.read(_WINDOW):
            found = zlib.crc32(window, found)
    if found != int(stored):
        raise FormatError(f"{DATA} has the checksum {found} and not {int(stored)}", position=0, segment=path.name)


def _located(error: FormatError, name: str) -> FormatError:
    if error.segment is not None:
        return error
    kind = type(error) if isinstance(error, UnsupportedError | UnknownColumnError) else FormatError
    return kind(error.reason, position=error.position, segment=name)
