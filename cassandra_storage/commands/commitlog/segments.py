"""Segments on disk: finding them, and reading one in any state."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.files.segments import WINDOW, OpenSegment
from cassandra_storage.formats.commitlog.descriptor import (
    index_file_name,
    parse_cdc_index,
    parse_file_name,
    read_descriptor,
)
from cassandra_storage.formats.commitlog.segment import MAX_SEGMENT_SIZE, CorruptEntry
from cassandra_storage.formats.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cassandra_storage.formats.commitlog.descriptor import CdcIndex, CommitLogDescriptor
    from cassandra_storage.formats.commitlog.sections import Codecs
    from cassandra_storage.formats.commitlog.segment import Event

_MARKER_SIZE = 8
_SIZE_SIZE = 4
_LARGEST_DESCRIPTOR = 14 + 0xFFFF + 4


class SegmentFile(NamedTuple):
    """A segment's file."""

    # The segment's id, from the file's name.
    id: int
    # The version of the commit log format, from the file's name.
    version: int
    # The path of the file.
    path: Path
    # It is the newest segment with content in its directory, and may still be written to. As in a replay by Cassandra,
    # only this one may have a torn end. (Cassandra creates the next one ahead.)
    is_newest: bool


class SegmentEnd(StrEnum):
    """The ways in which a segment ends."""

    ZEROES = "zero marker"
    FILE_END = "end of file"
    TORN = "torn tail"
    CORRUPT = "corrupt"


def find_segments(paths: Iterable[Path]) -> list[SegmentFile]:
    """The segments among these files and in these directories, each once, in the order of their ids.

    FormatError if a file does not have the name of a segment; OSError if a directory cannot be read.
    """
    found: dict[Path, tuple[int, int]] = {}
    for path in paths:
        files = [path] if not path.is_dir() else sorted(path.glob("CommitLog-*.log"))
        for file in files:
            version, segment_id = parse_file_name(file.name)
            found[file] = segment_id, version
    newest: dict[Path, int] = {}
    for file, (segment_id, _) in found.items():
        if segment_id > newest.get(file.parent, 0) and _is_begun(file):
            newest[file.parent] = segment_id
    ordered = sorted(found.items(), key=lambda item: (item[1][0], item[0]))
    return [SegmentFile(*key, file, key[0] >= newest.get(file.parent, 0)) for file, key in ordered]


class SegmentWalk:
    """Reads one segment to its end.

    Once `events` is exhausted, `ending` and `end_position` say how and where the segment ends. `unsynced_position` is
    the first byte after the end that is not zero: a running or killed node has written it, but not synced it.
    """

    def __init__(self, file: SegmentFile, codecs: Codecs | None = None) -> None:
        self.file = file
        self.index_problem: str | None = None
        self.index = self._read_index()
        self.size = 0
        self.ending = SegmentEnd.FILE_END
        self.end_position = 0
        self.unsynced_position: int | None = None
        self.descriptor: CommitLogDescriptor | None = None
        self._codecs = codecs
        self._open: OpenSegment | None = None

    @property
    def sections(self) -> int:
        return 0 if self._open is None else self._open.sections

    @property
    def index_path(self) -> Path:
        return self.file.path.with_name(index_file_name(self.file.path.name))

    @property
    def messaging_version(self) -> int:
        """The version of its mutations; known after the first one."""
        assert self.descriptor is not None
        return self.descriptor.messaging_version

    def events(self) -> Iterator[Event]:
        """Yield the segment's entries and its damage. A torn tail is not damage. OSError if the segment
        cannot be read.
        """
        self.size = self.file.path.stat().st_size
        self.descriptor = _descriptor(self.file.path)
        largest = max(self.size, MAX_SEGMENT_SIZE)
        self._open = OpenSegment(self.file.path, codecs=self._codecs, max_segment_size=largest)
        pending: CorruptEntry | None = None  # it may be the end of the segment
        try:
            for event in _all_events(self._open):
                if pending is not None:
                    yield pending
                    pending = None
                if isinstance(event, CorruptEntry) and event.mutation is None:
                    pending = event
                else:
                    yield event
        finally:
            self._open.close()
        self.end_position = self._open.position
        self._classify_end(pending)
        if pending is not None and self.ending is not SegmentEnd.TORN:
            yield pending
        elif pending is None and self.ending is SegmentEnd.CORRUPT:
            yield CorruptEntry(self.end_position, self.size, "section ends inside an entry")

    def _classify_end(self, last: CorruptEntry | None) -> None:
        """Determine how the segment ends, from its last event."""
        if last is not None and _place(last) == self.end_position:
            self.ending = SegmentEnd.TORN if self._may_be_torn(last) else SegmentEnd.CORRUPT
            return
        self.ending = SegmentEnd.FILE_END if self.size - self.end_position < _MARKER_SIZE else SegmentEnd.ZEROES
        assert self._open is not None
        if self.descriptor is not None and not self._open.is_coded:
            self.unsynced_position = _first_set(self.file.path, self.end_position)
            is_final = not self.file.is_newest or (self.index is not None and self.index.is_completed)
            if (
                is_final
                and self.unsynced_position is not None
                and self.unsynced_position < self.end_position + _SIZE_SIZE
            ):
                self.ending = SegmentEnd.CORRUPT

    def _may_be_torn(self, last: CorruptEntry) -> bool:
        """Return whether this may be the end of a segment of a running or killed node. A node that replays a segment
        writes COMPLETED and the file's length into its index.
        """
        if self.index is not None and self.index.is_completed:
            return last.is_truncation and self.index.offset == self.size
        is_after_durable = self.index is not None and last.position >= self.index.offset
        return self.file.is_newest and (last.is_truncation or is_after_durable)

    def _read_index(self) -> CdcIndex | None:
        try:
            return parse_cdc_index(self.index_path.read_bytes())
        except FileNotFoundError:
            return None
        except FormatError as error:
            self.index_problem = error.reason
            return None


def _all_events(segment: OpenSegment) -> Iterator[Event]:
    """The segment's events; a single CorruptEntry if its descriptor cannot be read."""
    try:
        yield from segment.events()
    except FormatError as error:
        is_short = error.reason == "segment without a descriptor"
        yield CorruptEntry(0, 0, error.reason, is_truncation=is_short)


def _descriptor(path: Path) -> CommitLogDescriptor | None:
    """The descriptor, even without a codec or a key for the segment."""
    with path.open("rb") as file:
        try:
            return read_descriptor(file.read(_LARGEST_DESCRIPTOR))
        except FormatError:
            return None


def _is_begun(path: Path) -> bool:
    """Return whether it has a section (CommitLogReader.shouldSkip)."""
    try:
        with path.open("rb") as file:
            head = file.read(_LARGEST_DESCRIPTOR + _MARKER_SIZE)
    except OSError:
        return False  # deleted or not readable: the walk reports it
    try:
        descriptor = read_descriptor(head)
    except FormatError:
        return True
    return any(head[descriptor.size : descriptor.size + _MARKER_SIZE] if descriptor is not None else head)


def _place(event: CorruptEntry) -> int:
    """The event's position in the file."""
    return event.position if event.section_offset is None else event.section_offset


def _first_set(path: Path, position: int) -> int | None:
    """The first byte from `position` on that is not zero."""
    with path.open("rb", buffering=0) as file:
        file.seek(position)
        while data := file.read(WINDOW):
            rest = data.lstrip(b"\0")
            if rest:
                return position + len(data) - len(rest)
            position += len(data)
    return None
