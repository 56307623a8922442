"""Segments on disk: which there are, and the walk through one of them, whatever state it is in."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.commitlog import (
    CorruptEntry,
    SegmentReader,
    index_file_name,
    parse_cdc_index,
    parse_file_name,
)
from cassandra_storage.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from cassandra_storage.commitlog import CdcIndex, CommitLogDescriptor, Event

_WINDOW = 256 * 1024
_MARKER_SIZE = 8
_SIZE_SIZE = 4


class SegmentFile(NamedTuple):
    """A segment's file, `is_newest` of its folder: as when Cassandra replays, only that one may end torn."""

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
        newest[file.parent] = max(newest.get(file.parent, segment_id), segment_id)
    ordered = sorted(found.items(), key=lambda item: (item[1][0], item[0]))
    return [SegmentFile(*key, file, key[0] == newest[file.parent]) for file, key in ordered]


class SegmentWalk:
    """Reads one segment to its end.

    Once `events` is exhausted it is known how it ends, where, and where behind that a byte is not zero: what a node
    that lives or was killed has written and not synced.
    """

    def __init__(self, file: SegmentFile) -> None:
        self.file = file
        self.index_problem: str | None = None
        self.index = self._read_index()
        self.size = 0
        self.ending = Ending.FILE_END
        self.end_position = 0
        self.stray: int | None = None
        self._reader = SegmentReader(file.path.name)

    @property
    def descriptor(self) -> CommitLogDescriptor | None:
        return self._reader.descriptor

    @property
    def index_path(self) -> Path:
        return self.file.path.with_name(index_file_name(self.file.path.name))

    @property
    def messaging_version(self) -> int:
        """Of its mutations; known once there is one."""
        assert self._reader.descriptor is not None
        return self._reader.descriptor.messaging_version

    @property
    def sections(self) -> int:
        return self._reader.sections

    def events(self) -> Iterator[Event]:
        """Its entries, and what is none; of a torn tail, which is no problem, nothing."""
        with self.file.path.open("rb", buffering=0) as handle:
            self.size = os.fstat(handle.fileno()).st_size
            for event in self._events(handle.fileno()):
                if isinstance(event, CorruptEntry) and event.mutation is None and event.end_position >= self.size:
                    self.end_position = event.position
                    self.ending = Ending.TORN if self._may_be_torn(event) else Ending.CORRUPT
                    if self.ending is Ending.CORRUPT:
                        yield event
                    return
                yield event
            self.end_position = self._reader.position
            self.ending = Ending.FILE_END if self.size - self.end_position < _MARKER_SIZE else Ending.ZEROES
            self.stray = _first_set(handle.fileno(), self.end_position, self.size)
            if self.stray is not None and self.stray < self.end_position + _SIZE_SIZE:
                self.ending = Ending.CORRUPT
                yield CorruptEntry(self.end_position, self.size, "section ends inside an entry")

    def _events(self, handle: int) -> Iterator[Event]:
        reader = self._reader
        while not reader.is_ended:
            before, wanted = reader.position, reader.wanted
            size = max(min(max(_WINDOW, wanted), self.size - before), 0)
            try:
                yield from reader.read(os.pread(handle, size, before), self.size)
            except FormatError as error:
                is_short = reader.descriptor is None and error.reason == "segment without a descriptor"
                yield CorruptEntry(0, self.size, error.reason, is_truncation=is_short)
                return
            if (reader.position, reader.wanted) == (before, wanted) and not reader.is_ended:
                yield CorruptEntry(before, self.size, "ends inside an entry", is_truncation=True)
                return

    def _may_be_torn(self, event: CorruptEntry) -> bool:
        """Whether a segment may end so while its node lives, or after it died."""
        if self.index is not None and self.index.is_completed:
            return False
        is_behind_durable = self.index is not None and event.position >= self.index.offset
        return self.file.is_newest and (event.is_truncation or is_behind_durable)

    def _read_index(self) -> CdcIndex | None:
        try:
            return parse_cdc_index(self.index_path.read_bytes())
        except FileNotFoundError:
            return None
        except FormatError as error:
            self.index_problem = error.reason
            return None


def _first_set(handle: int, position: int, size: int) -> int | None:
    """The first byte from `position` on that is not zero."""
    while position < size:
        data = os.pread(handle, _WINDOW, position)
        if not data:
            break
        rest = data.lstrip(b"\0")
        if rest:
            return position + len(data) - len(rest)
        position += len(data)
    return None
