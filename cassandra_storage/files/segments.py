"""Segments as files: those in a directory, their indexes, and the events of a segment of any kind.

What Cassandra writes to cdc_raw (CommitLogSegmentManagerCDC, CommitLogSegment, CommitLogReplayer):

- 3.11 moves a segment to cdc_raw when it is full and flushed, if it has CDC writes. After a crash, the starting node
  also moves every segment that it has replayed, with or without CDC writes. Such a segment may have a torn end.
- 4.0 and later link a segment to cdc_raw when they create it, still empty, with or without CDC writes later. At each
  sync after a CDC write they truncate and write its `_cdc.idx`, which is the durable logical offset. At the first sync
  after the segment is full they add COMPLETED. When the segment is flushed they delete the commit log's own link, and
  this link too if the segment has no CDC write. After a crash, the starting node recreates a missing link, and writes
  the file's length and COMPLETED into the index of each segment with a replayed CDC write. Then it deletes the commit
  log's own link of every segment, and this link if the segment has no index.

So a segment without COMPLETED in its index gets no more bytes once this link is its only one: it was flushed, and the
node crashed before it was completed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, NoReturn

from cassandra_storage.formats.commitlog.descriptor import (
    CdcIndex,
    index_file_name,
    parse_cdc_index,
    parse_file_name,
    read_descriptor,
)
from cassandra_storage.formats.commitlog.segment import MAX_SEGMENT_SIZE, BatchT, CorruptEntry, SegmentReader
from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.versions import commit_log_format

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cassandra_storage.formats.commitlog.descriptor import CommitLogDescriptor
    from cassandra_storage.formats.commitlog.sections import Codecs
    from cassandra_storage.formats.commitlog.segment import BatchedReader, Event

WINDOW = 256 * 1024
MAX_DESCRIPTOR_SIZE = 14 + 0xFFFF + 4


class SegmentFile(NamedTuple):
    """The file of a segment. Segments sort in the order of creation."""

    # The segment's id, from the file's name.
    id: int
    # The version of the commit log format, from the file's name.
    version: int
    # The path of the file.
    path: Path

    @property
    def index_path(self) -> Path:
        return self.path.with_name(index_file_name(self.path.name))

    def read_index(self) -> CdcIndex | None:
        """Return how much of the segment is durable; None if there is nothing to read yet (no index, or an incomplete
        one).

        A version without indexes counts as replayed: its offset is the file's length. FormatError if the file is not an
        index, UnsupportedError for an unknown version.
        """
        try:
            if not commit_log_format(self.version).has_cdc_index:
                return CdcIndex(self.path.stat().st_size, is_completed=True)
            return parse_cdc_index(self.index_path.read_bytes())
        except FileNotFoundError:
            return None

    def is_left_behind(self) -> bool:
        """Return whether Cassandra has released it: it gets no more bytes, whatever its index says."""
        return self.path.stat().st_nlink == 1

    def delete(self) -> None:
        """Remove the log and then the index: an index alone is harmless, a log alone looks like a new segment."""
        self.path.unlink(missing_ok=True)
        self.index_path.unlink(missing_ok=True)


def list_segments(folder: Path) -> list[SegmentFile]:
    """The segments in the directory, in the order of their ids, which is the order of creation. Files with other names
    are skipped, as in Cassandra.
    """
    found = []
    for name in os.listdir(folder):  # noqa: PTH208  called twenty times a second: no Path for each name
        with suppress(FormatError):
            version, segment = parse_file_name(name)
            found.append(SegmentFile(segment, version, folder / name))
    return sorted(found)


def read_descriptor_of(path: Path) -> CommitLogDescriptor | None:
    """The segment's descriptor; None while it has none. FormatError if it is damaged or unknown."""
    with path.open("rb") as file:
        return read_descriptor(file.read(MAX_DESCRIPTOR_SIZE))


def remove_orphaned_indexes(folder: Path) -> None:
    """Remove indexes without a log, which an interrupted deletion leaves."""
    for index in folder.glob("CommitLog-*_cdc.idx"):
        if not index.with_name(index.name.replace("_cdc.idx", ".log")).exists():
            index.unlink(missing_ok=True)


class OpenBatchedSegment(Generic[BatchT]):
    """A segment's file, read on from the last position with a reader that may yield batches. The first read opens the
    file, and reaching the end closes it.
    """

    def __init__(self, path: Path, reader: BatchedReader[BatchT]) -> None:
        self.path = path
        self._reader = reader
        self._handle: int | None = None

    @property
    def descriptor(self) -> CommitLogDescriptor | None:
        """None before it has been read."""
        return self._reader.descriptor

    @property
    def is_coded(self) -> bool:
        """Return whether its sections are compressed or encrypted; known after the first read."""
        return self._reader.is_coded

    @property
    def sections(self) -> int:
        """The number of sections read so far."""
        return self._reader.sections

    @property
    def position(self) -> int:
        """The position in the file after the bytes read so far."""
        return self._reader.position

    @property
    def is_ended(self) -> bool:
        """Return whether all of it has been read, and no more will follow."""
        return self._reader.is_ended

    def events(self, durable: int | None = None) -> Iterator[Event | BatchT]:
        """The new events up to the logical offset `durable`; None means that the segment is complete: all other events.

        FormatError if its descriptor cannot be read, OSError if the file cannot.
        """
        reader = self._reader
        size = os.fstat(self._file()).st_size
        while not reader.is_ended:
            limit = size if durable is None or reader.is_coded else min(size, durable)
            before, wanted = reader.position, reader.wanted
            if durable is not None and before + wanted > limit:
                return
            data = os.pread(self._file(), max(min(max(WINDOW, wanted), limit - before), 0), before)
            yield from reader.read(data, size if durable is None else None, durable=durable)
            if (reader.position, reader.wanted) == (before, wanted):
                if durable is None and not reader.is_ended:
                    reader.is_ended = True
                    yield CorruptEntry(before, before, "the file has become shorter")
                return
        self.close()

    def close(self) -> None:
        """Close the file. The next read opens it again."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _file(self) -> int:
        if self._handle is None:
            self._handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        return self._handle


class OpenSegment(OpenBatchedSegment[NoReturn]):
    """A segment's file that is read entry by entry; see SegmentReader for the arguments."""

    def __init__(
        self,
        path: Path,
        resume_from: int = 0,
        *,
        codecs: Codecs | None = None,
        max_segment_size: int = MAX_SEGMENT_SIZE,
    ) -> None:
        super().__init__(path, SegmentReader(path.name, resume_from, codecs=codecs, max_segment_size=max_segment_size))


def read_segment(path: Path, codecs: Codecs | None = None) -> Iterator[Event]:
    """All events of a complete segment, or of its present content; errors as OpenSegment.events."""
    segment = OpenSegment(path, codecs=codecs)
    try:
        yield from segment.events()
    finally:
        segment.close()
