"""All SSTables of a table on a node, in its data directories or in a snapshot, merged into one stream of partitions.

An SSTable is opened when the merge reaches its first partition and closed after its last. So few are open at a time if
the table's SSTables lie one after the other (leveled compaction).
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cassandra_storage.files.sstable_data import ComponentFile
from cassandra_storage.files.sstables import SSTable, list_sstables, read_statistics
from cassandra_storage.formats.errors import FormatError, UnsupportedError
from cassandra_storage.formats.merge.purge import Purger
from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.primitives.token_ranges import MINIMUM, WHOLE_RING, Span, TokenRange, spans
from cassandra_storage.formats.sstable.file_name import INDEX, PARTITIONS, ROWS, SUMMARY, parse_table_folder
from cassandra_storage.formats.sstable.merge import merge_inputs
from cassandra_storage.formats.sstable.partition_index import IndexEntry, find_before_in_trie, find_in_index
from cassandra_storage.formats.sstable.versions import BTI

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from cassandra_storage.files.sstables import SSTableFile
    from cassandra_storage.formats.rows.unfiltered import Unfiltered
    from cassandra_storage.formats.schema.tables import TableMetadata
    from cassandra_storage.formats.sstable.merge import MergedPartition, MergePosition
    from cassandra_storage.formats.sstable.reader import Partition
    from cdc_native.formats.sstables import SpanData

MURMUR3 = "org.apache.cassandra.dht.Murmur3Partitioner"
_SNAPSHOTS = "snapshots"


class DamagedTableError(Exception):
    """An SSTable of a table that cannot be read any further: its table cannot be merged until it is repaired or
    removed. Other tables can. `path`: the file; `position`: the place in it, or for rows of Data.db that in the
    uncompressed data (see SSTable); `after`: the last token whose partitions were given whole, None if none were.
    """

    def __init__(self, table: str, path: Path, error: FormatError, after: int | None) -> None:
        lost = "none of it can be merged" if after is None else f"what has tokens above {after} cannot be merged"
        where = f"{path}" if error.position is None else f"{path}:{error.position}"
        super().__init__(f"{where}: {error.reason}; of {table} {lost}. Run nodetool scrub or repair")
        self.table = table
        self.path = path
        self.position = error.position
        self.reason = error.reason
        self.after = after


def table_files(data_folders: Iterable[Path], table: TableMetadata, snapshot: str | None = None) -> list[SSTableFile]:
    """The SSTables of the table in those data directories of a node, or of one of its snapshots there, older ones
    first. FormatError, UnsupportedError and OSError as list_sstables; FileNotFoundError if the snapshot is nowhere.
    """
    folders = [
        folder
        for data in data_folders
        if (data / table.keyspace).is_dir()
        for folder in sorted((data / table.keyspace).iterdir())
        if folder.is_dir() and _is_of(folder.name, table)
    ]
    if snapshot is not None:
        folders = [folder / _SNAPSHOTS / snapshot for folder in folders if (folder / _SNAPSHOTS / snapshot).is_dir()]
        if not folders:
            raise FileNotFoundError(f"{table.qualified_name} has no snapshot {snapshot!r}")
    found = [file for folder in folders for file in list_sstables(folder)]
    return sorted(found, key=lambda file: file.descriptor.order)


def _is_of(folder: str, table: TableMetadata) -> bool:
    """Directories of 3.x and later have the table's id: one of the same name may be of a table that was dropped."""
    named = parse_table_folder(folder)
    return named is not None and named[1] == table.id


class TableSSTables:
    """The SSTables of one table, `files`, which must stay as they are: take a snapshot of them.

    DamagedTableError if one of them is not readable, UnsupportedError for another partitioner than Murmur3Partitioner
    and what SSTable does not support.
    """

    def __init__(self, table: TableMetadata, files: Sequence[SSTableFile]) -> None:
        self.table = table
        self.files = files
        self.merged_to: int | None = None
        unrepaired = []
        for file in files:
            with self.damage_of(file):
                statistics = read_statistics(file)
            if statistics.partitioner != MURMUR3:
                reason = f"the partitioner {statistics.partitioner} is not supported, only {MURMUR3}"
                raise UnsupportedError(reason, segment=str(file.data_path))
            if not statistics.stats.repaired_at:
                unrepaired.append(statistics.stats.min_local_deletion_time)
        self._oldest_unrepaired = min(unrepaired, default=None)

    def purger(self, now: int, *, only_repaired: bool = False) -> Purger:
        """The rules by which a compaction of all of them at `now` (s since the epoch) purges. `only_repaired`: the
        table's compaction option only_purge_repaired_tombstones.
        """
        oldest = self._oldest_unrepaired if only_repaired else None
        return Purger(now, self.table.gc_grace_seconds, oldest_unrepaired=oldest)

    def merged(
        self, purger: Purger, ranges: Iterable[TokenRange] = WHOLE_RING, after: MergePosition | None = None
    ) -> Generator[MergedPartition, None, None]:
        """The merged partitions whose tokens are in the ranges, after that place (sstable_merge.merge_inputs).

        The SSTables' indexes find the place: nothing before it is read. The generator closes the files when it is
        closed. DamagedTableError, UnsupportedError and OSError come from it and from the rows of its partitions.
        """
        self.merged_to = None if after is None else after.token - 1  # another key may have the same
        inputs = self.inputs(ranges, after)
        try:
            for partition in merge_inputs(self.table, inputs, purger, after):
                yield partition
                self.merged_to = partition.token - 1
        finally:
            for sstable in inputs:
                sstable.close()

    def inputs(
        self, ranges: Iterable[TokenRange] = WHOLE_RING, after: MergePosition | None = None
    ) -> list[TokenSpansInput]:
        """Return the SSTables that `merged` merges: those that have partitions in the ranges and not before the place,
        with the first token of each. None is open. Errors as `merged`.
        """
        wanted = spans(ranges, MINIMUM if after is None else after.token)
        inputs = [TokenSpansInput(self, file, wanted) for file in self.files] if wanted else []
        return [sstable for sstable in inputs if sstable.find_first()]

    @contextmanager
    def damage_of(self, file: SSTableFile) -> Iterator[None]:
        """FormatErrors of that file, and components of it that are missing, become DamagedTableErrors. Without its
        Data.db the file was removed, not damaged: FileNotFoundError.
        """
        try:
            yield
        except UnsupportedError:
            raise
        except FormatError as error:
            raise self.damaged(file, error) from error
        except FileNotFoundError as error:
            if not file.data_path.exists():
                raise
            name = Path(error.filename).name
            raise self.damaged(file, FormatError("the file is not there", segment=name)) from error

    def damaged(self, file: SSTableFile, error: FormatError) -> DamagedTableError:
        """The error of that file as one of its table."""
        path = file.data_path if error.segment is None else file.folder / error.segment
        return DamagedTableError(self.table.qualified_name, path, error, self.merged_to)


class TokenSpansInput:
    """The partitions of one SSTable whose tokens are in the spans (sstable_merge.MergeInput)."""

    def __init__(self, of: TableSSTables, file: SSTableFile, wanted: Sequence[Span]) -> None:
        self.first_token = MINIMUM
        self._of = of
        self._file = file
        self._spans = wanted
        self._sstable: SSTable | None = None
        self._stream: Generator[tuple[int, Partition], None, None] | None = None

    def find_first(self) -> bool:
        """Set first_token; False if there are no partitions in the spans."""
        first = next(self.partitions(), None)
        self.close()
        if first is None:
            return False
        self.first_token = first[0]
        return True

    def partitions(self) -> Iterator[tuple[int, Partition]]:
        self._stream = self._read()
        return self._stream

    def _read(self) -> Generator[tuple[int, Partition], None, None]:
        with self._of.damage_of(self._file), SSTable(self._file, self._of.table) as sstable:
            self._sstable = sstable
            for span in self._spans:
                yield from self._span(sstable, span)

    def rows(self) -> Iterator[Unfiltered]:
        assert self._sstable is not None
        with self._of.damage_of(self._file):
            yield from self._sstable.rows()

    def error(self, reason: str) -> Exception:
        position = None if self._sstable is None else self._sstable.position
        return self._of.damaged(self._file, FormatError(reason, position=position))

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def open_spans(self) -> tuple[SSTable, Iterator[SpanData]]:
        """The SSTable, and its data for the native core. It is closed after the last span, and with its last reference.
        FormatError, OSError.
        """
        sstable = SSTable(self._file, self._of.table)
        return sstable, self._span_data(sstable)

    def _span_data(self, sstable: SSTable) -> Iterator[SpanData]:
        with sstable:
            for span in self._spans:
                entry = self._find(sstable, span)
                if entry is not None:
                    size = sstable.data.length - entry.position
                    chunks = sstable.data.chunks(entry.position)
                    yield span.first, span.last, entry.key, self._is_before(entry), size, chunks

    def _find(self, sstable: SSTable, span: Span) -> IndexEntry | None:
        """Return where the span's partitions begin, or one before them. FormatError for a place that is not in the
        data.
        """
        if span.first == MINIMUM:
            return IndexEntry(0)
        entry = find_partition(self._file, span.first, self._of.table)
        if entry is not None and entry.position > 0 and entry.position >= sstable.data.length:
            reason = f"the index leads past the data, which has {sstable.data.length} bytes"
            raise FormatError(reason, position=entry.position, segment=self._file.data_path.name)
        return entry

    def _is_before(self, entry: IndexEntry) -> bool:
        """Return whether the index leads to a partition before those that it was asked for."""
        return entry.position > 0 and self._file.descriptor.format.format == BTI

    def _span(self, sstable: SSTable, span: Span) -> Iterator[tuple[int, Partition]]:
        entry = self._find(sstable, span)
        if entry is None:
            return
        must_be_before = self._is_before(entry)
        expected = entry.key
        for partition in sstable.partitions(entry.position):
            if expected is not None and partition.key != expected:
                raise FormatError(f"not the partition 0x{expected.hex()} of the index", position=partition.position)
            expected = None
            token = decorated_token(partition.key)
            if must_be_before and token >= span.first:
                raise FormatError("Partitions.db leads past earlier partitions", position=partition.position)
            must_be_before = False
            if token > span.last:
                return
            if token >= span.first:
                yield token, partition


def find_partition(file: SSTableFile, token: int, table: TableMetadata | None = None) -> IndexEntry | None:
    """Return the index entry of the first partition from `token` on (BIG), or one before all such partitions (BTI). See
    partition_index. FormatError, OSError. `table`: as for SSTable.
    """
    if file.descriptor.format.format == BTI:
        with ComponentFile(file.path(PARTITIONS)) as partitions, ComponentFile(file.path(ROWS)) as rows:
            return find_before_in_trie(partitions, rows, token)
    find_next = partial(_find_next, file, table)
    with ComponentFile(file.path(INDEX)) as index:
        if not file.path(SUMMARY).exists():
            return find_in_index(index, None, token, find_next)
        with ComponentFile(file.path(SUMMARY)) as summary:
            return find_in_index(index, summary, token, find_next)


def _find_next(file: SSTableFile, table: TableMetadata | None, entry: IndexEntry) -> int | None:
    """Return the position in the data of the partition after the entry's; None if the entry's is the last one.
    FormatError if the entry leads to no such partition.
    """
    with SSTable(file, table) as sstable:
        partitions = sstable.partitions(entry.position)
        found = next(partitions, None)
        if found is None or found.key != entry.key:
            reason = f"Index.db leads to byte {entry.position} of the data, where another partition is"
            raise FormatError(reason, position=entry.position, segment=file.data_path.name)
        following = next(partitions, None)
        return None if following is None else following.position
