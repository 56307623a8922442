"""Follows the segments in cdc_raw as they are written (4.0+) or arrive (3.11): what is durable and not yet read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import structlog

from cassandra_storage.commitlog import CommitLogEntry, CorruptEntry, SegmentReader
from cassandra_storage.errors import FormatError
from cdc_program.errors import CdcError, Code
from publisher.cdc_raw import segments, unsupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from cassandra_storage.commitlog import CdcIndex
    from publisher.cdc_raw import SegmentFile
    from publisher.position import Positions

WINDOW = 256 * 1024

log = structlog.get_logger(__name__)


class SegmentTail:
    """One segment, read from where it is acknowledged. `position`: all before it has been read."""

    def __init__(self, file: SegmentFile, resume_from: int) -> None:
        self.file = file
        self.position = resume_from
        self._reader = SegmentReader(file.path.name, resume_from)
        self._handle: int | None = None
        self._durable = 0
        self._tried = 0
        self._is_completed = False

    @property
    def messaging_version(self) -> int:
        """Of its mutations; known once it has been read from."""
        return self._reader.descriptor.messaging_version if self._reader.descriptor else 0

    @property
    def is_at_end(self) -> bool:
        """All has been read, and no more will come."""
        return self._is_completed and self._reader.is_ended

    @property
    def has_unread(self) -> bool:
        return self._is_completed or (self._durable > self._tried and not self._reader.is_ended)

    @property
    def is_begun(self) -> bool:
        return self._durable > 0 or self.position > 0

    def extend(self, index: CdcIndex) -> None:
        """Take what its index says now."""
        self._is_completed = self._is_completed or index.is_completed
        self._durable = max(self._durable, index.offset)

    def entries(self) -> Iterator[CommitLogEntry]:
        """What is durable and was not read; CdcError SEGMENT_CORRUPT at what is no entry.

        The file is closed at its end, and stays open if more may come.
        """
        try:
            limit = self._open()
        except FileNotFoundError:
            return  # the next look into the folder reports it
        while not self._reader.is_ended:
            before, wanted = self._reader.position, self._reader.wanted
            size = min(max(WINDOW, wanted), limit - before)
            for event in self._read(os.pread(self._file(), max(size, 0), before), limit):
                if isinstance(event, CorruptEntry):
                    raise self._corrupt(event.reason, event.position)
                self.position = event.end_position
                yield event
            if (self._reader.position, self._reader.wanted) == (before, wanted):
                if self._is_completed and not self._reader.is_ended:
                    raise self._corrupt("ends inside an entry", before)
                break
        self._tried = limit
        if self.is_at_end:
            self.close()

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _open(self) -> int:
        """Up to where it can be read."""
        return os.fstat(self._file()).st_size if self._is_completed else self._durable

    def _file(self) -> int:
        if self._handle is None:
            self._handle = os.open(self.file.path, os.O_RDONLY | os.O_CLOEXEC)
        return self._handle

    def _read(self, data: bytes, limit: int) -> Iterable[CommitLogEntry | CorruptEntry]:
        try:
            return self._reader.read(data, limit if self._is_completed else None)
        except FormatError as error:
            if "not supported" in error.reason:
                raise unsupported(self.file.path, error) from error
            raise self._corrupt(error.reason, 0) from error

    def _corrupt(self, reason: str, position: int) -> CdcError:
        return CdcError(
            Code.SEGMENT_CORRUPT,
            f"The segment {self.file.path} is damaged at position {position}: {reason}.",
            "Keep a copy of the segment, move it away, and repair the tables with cdc = true on this node.",
        )


class Tails:
    """The segments that are not finished."""

    def __init__(self, folder: Path, positions: Positions) -> None:
        self._folder = folder
        self._positions = positions
        self._tails: dict[int, SegmentTail] = {}

    def poll(self) -> list[SegmentTail]:
        """Those with something to read, in order: nearly always it is the end of one and the beginning of the next.

        A segment may be passed by a later one, and be read on when its index says so.
        """
        files = [file for file in segments(self._folder) if not self._positions.is_finished(file.id)]
        self._drop_vanished({file.id for file in files})
        return [tail for file in files if (tail := self._look(file)) is not None and tail.has_unread]

    def _look(self, file: SegmentFile) -> SegmentTail | None:
        tail = self._tails.get(file.id)
        if tail is None:
            tail = self._tails[file.id] = SegmentTail(file, self._positions.resume_at(file.id))
        if tail.is_at_end:
            return None
        index = file.read_index()
        if index is not None:
            tail.extend(index)
        return tail

    def _drop_vanished(self, present: set[int]) -> None:
        for segment in [segment for segment in self._tails if segment not in present]:
            tail = self._tails.pop(segment)
            tail.close()
            if tail.is_begun and not tail.is_at_end:
                log.error("a segment vanished before it was wholly published", file=tail.file.path.name)
