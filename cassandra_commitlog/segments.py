"""Segments on disk: which there are, and the walk through one of them, whatever state it is in."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cassandra_files.segments import WINDOW, OpenSegment
from cassandra_storage.commitlog import (
    MAX_SEGMENT_SIZE,
    CorruptEntry,
    index_file_name,
    parse_cdc_index,
    parse_file_name,
    read_descriptor,
)
from cassandra_storage.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cassandra_storage.commitlog import CdcIndex, CommitLogDescriptor, Event
    from cassandra_storage.commitlog_sections import Codecs

_MARKER_SIZE = 8
_SIZE_SIZE = 4
_LARGEST_DESCRIPTOR = 14 + 0xFFFF + 4


class SegmentFile(NamedTuple):
    """A segment's file. `is_newest`: none of its folder that holds anything is newer, and it may be written still; as
    when Cassandra replays, it alone may end torn. (The next one is made ahead.)
    """

    id: int
    version: int
    path: Path
    is_newest: bool


class Ending(StrEnum):
    """How a segment ends."""

    ZEROES = "zero marker"
    FILE_END = "end of file"
    TORN = "torn tail"
    CORRUPT = "corrupt"


def find_segments(paths: Iterable[Path]) -> list[SegmentFile]:
    """The segments that are these files or lie in these folders, each once, in the order of their ids.

    FormatError if a file given by itself has no segment's name; OSError if a folder cannot be read.
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

    Once `events` is exhausted it is known how it ends, at which place in the file, and where behind that a byte is not
    zero: what a node that lives or was killed has written and not synced.
    """

    def __init__(self, file: SegmentFile, codecs: Codecs | None = None) -> None:
        self.file = file
        self.index_problem: str | None = None
        self.index = self._read_index()
        self.size = 0
        self.ending = Ending.FILE_END
        self.end_position = 0
        self.stray: int | None = None
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
        """Of its mutations; known once there is one."""
        assert self.descriptor is not None
        return self.descriptor.messaging_version

    def events(self) -> Iterator[Event]:
        """Its entries, and what is none; of a torn tail, which is no problem, nothing. OSError if it cannot be read."""
        self.size = self.file.path.stat().st_size
        self.descriptor = _descriptor(self.file.path)
        largest = max(self.size, MAX_SEGMENT_SIZE)
        self._open = OpenSegment(self.file.path, codecs=self._codecs, max_segment_size=largest)
        held: CorruptEntry | None = None  # it may be what the segment ends with
        try:
            for event in _all_events(self._open):
                if held is not None:
                    yield held
                    held = None
                if isinstance(event, CorruptEntry) and event.mutation is None:
                    held = event
                else:
                    yield event
        finally:
            self._open.close()
        self.end_position = self._open.position
        self._judge(held)
        if held is not None and self.ending is not Ending.TORN:
            yield held
        elif held is None and self.ending is Ending.CORRUPT:
            yield CorruptEntry(self.end_position, self.size, "section ends inside an entry")

    def _judge(self, last: CorruptEntry | None) -> None:
        """How it ends, if the last event was that."""
        if last is not None and _place(last) == self.end_position:
            self.ending = Ending.TORN if self._may_be_torn(last) else Ending.CORRUPT
            return
        self.ending = Ending.FILE_END if self.size - self.end_position < _MARKER_SIZE else Ending.ZEROES
        assert self._open is not None
        if self.descriptor is not None and not self._open.is_coded:
            self.stray = _first_set(self.file.path, self.end_position)
            is_final = not self.file.is_newest or (self.index is not None and self.index.is_completed)
            if is_final and self.stray is not None and self.stray < self.end_position + _SIZE_SIZE:
                self.ending = Ending.CORRUPT

    def _may_be_torn(self, last: CorruptEntry) -> bool:
        """Whether a segment may end so while its node lives, or after it died: a node that replays it writes COMPLETED
        and the file's length into its index.
        """
        if self.index is not None and self.index.is_completed:
            return last.is_truncation and self.index.offset == self.size
        is_behind_durable = self.index is not None and last.position >= self.index.offset
        return self.file.is_newest and (last.is_truncation or is_behind_durable)

    def _read_index(self) -> CdcIndex | None:
        try:
            return parse_cdc_index(self.index_path.read_bytes())
        except FileNotFoundError:
            return None
        except FormatError as error:
            self.index_problem = error.reason
            return None


def _all_events(segment: OpenSegment) -> Iterator[Event]:
    """Its events; of a segment whose descriptor cannot be read one that says so."""
    try:
        yield from segment.events()
    except FormatError as error:
        is_short = error.reason == "segment without a descriptor"
        yield CorruptEntry(0, 0, error.reason, is_truncation=is_short)


def _descriptor(path: Path) -> CommitLogDescriptor | None:
    """What it says of itself, whether or not there is a codec and a key for it."""
    with path.open("rb") as file:
        try:
            return read_descriptor(file.read(_LARGEST_DESCRIPTOR))
        except FormatError:
            return None


def _is_begun(path: Path) -> bool:
    """Whether it has a section (CommitLogReader.shouldSkip)."""
    try:
        with path.open("rb") as file:
            head = file.read(_LARGEST_DESCRIPTOR + _MARKER_SIZE)
    except OSError:
        return False  # gone, or not for us to read: the walk says so
    try:
        descriptor = read_descriptor(head)
    except FormatError:
        return True
    return any(head[descriptor.size : descriptor.size + _MARKER_SIZE] if descriptor is not None else head)


def _place(event: CorruptEntry) -> int:
    """Where in the file it was met."""
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
