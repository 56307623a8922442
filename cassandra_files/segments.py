"""Segments as files: which are in a folder, what their indexes say, and the events in one of any kind.

Who writes what into cdc_raw, by the sources (CommitLogSegmentManagerCDC, CommitLogSegment, CommitLogReplayer):

- 3.11 moves a segment here when it is full and flushed, if it has CDC writes; and, when the node starts again after a
  crash, every segment that it has replayed, with or without CDC writes, torn as it may be.
- 4.0 and later link a segment here when they make it, still empty, whether or not CDC writes will come. At each sync
  after a CDC write they truncate and write its `_cdc.idx`: the logical offset that is durable; at the first sync after
  it is full the same with COMPLETED. When it is flushed they delete the commit log's own link, and this one too if it
  has no CDC write. When the node starts again after a crash they make this link again if it is gone and write the
  file's length and COMPLETED into the index of each segment of which a CDC write was replayed, and then delete the
  commit log's own link of every segment, and this one if it has no index.

So a segment whose index lacks COMPLETED gets no more bytes once it has no link but this one: it was flushed, and the
node crashed before it was completed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.commitlog import (
    MAX_SEGMENT_SIZE,
    CdcIndex,
    CorruptEntry,
    SegmentReader,
    index_file_name,
    parse_cdc_index,
    parse_file_name,
    read_descriptor,
)
from cassandra_storage.errors import FormatError
from cassandra_storage.versions import commit_log_format

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cassandra_storage.commitlog import CommitLogDescriptor, Event
    from cassandra_storage.commitlog_sections import Codecs

WINDOW = 256 * 1024
MAX_DESCRIPTOR_SIZE = 14 + 0xFFFF + 4


class SegmentFile(NamedTuple):
    """A segment of commit log format `version`, by its file's name; ordered as they were begun."""

    id: int
    version: int
    path: Path

    @property
    def index_path(self) -> Path:
        return self.path.with_name(index_file_name(self.path.name))

    def read_index(self) -> CdcIndex | None:
        """How much of it is durable; None if there is nothing to read yet (no index, or one just being written).

        A version without indexes is taken for replayed: its number is the file's length. FormatError if it is not an
        index, UnsupportedError if the version is not known.
        """
        try:
            if not commit_log_format(self.version).has_cdc_index:
                return CdcIndex(self.path.stat().st_size, is_completed=True)
            return parse_cdc_index(self.index_path.read_bytes())
        except FileNotFoundError:
            return None

    def is_left_behind(self) -> bool:
        """Cassandra has let go of it: it gets no more bytes, whatever its index says."""
        return self.path.stat().st_nlink == 1

    def delete(self) -> None:
        """Remove log and index, the log first: an index alone is rubbish, a log alone looks like one not begun."""
        self.path.unlink(missing_ok=True)
        self.index_path.unlink(missing_ok=True)


def list_segments(folder: Path) -> list[SegmentFile]:
    """The segments in the folder in the order of their ids, which is the order in which they were begun. Files with
    other names are passed over, as Cassandra does.
    """
    found = []
    for name in os.listdir(folder):  # noqa: PTH208  twenty times a second: no Path for each name
        with suppress(FormatError):
            version, segment = parse_file_name(name)
            found.append(SegmentFile(segment, version, folder / name))
    return sorted(found)


def read_descriptor_of(path: Path) -> CommitLogDescriptor | None:
    """What the segment says of itself; None while it does not. FormatError if it is damaged or unknown."""
    with path.open("rb") as file:
        return read_descriptor(file.read(MAX_DESCRIPTOR_SIZE))


def remove_orphaned_indexes(folder: Path) -> None:
    """Remove the indexes that a deletion cut short has left without a log."""
    for index in folder.glob("CommitLog-*_cdc.idx"):
        if not index.with_name(index.name.replace("_cdc.idx", ".log")).exists():
            index.unlink(missing_ok=True)


class OpenSegment:
    """A segment's file, read on from where the last reading stopped; see SegmentReader for the arguments. The file is
    opened when it is first read, and closed at its end.
    """

    def __init__(
        self,
        path: Path,
        resume_from: int = 0,
        *,
        codecs: Codecs | None = None,
        max_segment_size: int = MAX_SEGMENT_SIZE,
    ) -> None:
        self.path = path
        self._reader = SegmentReader(path.name, resume_from, codecs=codecs, max_segment_size=max_segment_size)
        self._handle: int | None = None

    @property
    def descriptor(self) -> CommitLogDescriptor | None:
        """None until it has been read."""
        return self._reader.descriptor

    @property
    def is_coded(self) -> bool:
        """Its sections are compressed or encrypted; known once it has been read."""
        return self._reader.is_coded

    @property
    def sections(self) -> int:
        """How many it has come by."""
        return self._reader.sections

    @property
    def position(self) -> int:
        """The place in the file behind what has been read."""
        return self._reader.position

    @property
    def is_ended(self) -> bool:
        """All of it has been read, and no more will come."""
        return self._reader.is_ended

    def events(self, durable: int | None = None) -> Iterator[Event]:
        """What is new up to the logical offset `durable`; if None the segment is complete, and all the rest comes.

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
        """It opens again when it is read."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _file(self) -> int:
        if self._handle is None:
            self._handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        return self._handle


def read_segment(path: Path, codecs: Codecs | None = None) -> Iterator[Event]:
    """All events of a segment that is complete, or of what there is of it; errors as OpenSegment.events."""
    segment = OpenSegment(path, codecs=codecs)
    try:
        yield from segment.events()
    finally:
        segment.close()
