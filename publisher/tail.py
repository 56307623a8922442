"""Follows the segments in cdc_raw as they are written (4.0+) or arrive (3.11): what is durable and not yet read."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

import structlog

from cassandra_files.segments import OpenSegment
from cassandra_storage.commitlog import MAX_SEGMENT_SIZE, CommitLogEntry, CorruptEntry
from cassandra_storage.errors import FormatError
from publisher.cdc_raw import damaged, read_index, segments, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cassandra_files.segments import SegmentFile
    from cassandra_storage.commitlog import CdcIndex
    from cassandra_storage.commitlog_sections import Codecs
    from cdc_program.errors import CdcError
    from publisher.position import Positions
    from publisher.spool import Spool

LEFT_BEHIND_SECONDS = 10.0

log = structlog.get_logger(__name__)


class SegmentTail:
    """One segment, read from where it is acknowledged. `position`: all before it has been read."""

    def __init__(self, file: SegmentFile, resume_from: int, codecs: Codecs | None, max_segment_size: int) -> None:
        self.file = file
        self.position = resume_from
        self.is_completed = False
        self._segment = OpenSegment(file.path, resume_from, codecs=codecs, max_segment_size=max_segment_size)
        self._durable = 0
        self._tried = 0
        self._may_be_torn = False
        self._torn: CorruptEntry | None = None
        self._passed_since: float | None = None

    @property
    def messaging_version(self) -> int:
        """Of its mutations; known once it has been read from."""
        return self._segment.descriptor.messaging_version if self._segment.descriptor else 0

    @property
    def is_at_end(self) -> bool:
        """All has been read, and no more will come."""
        return self.is_completed and self._segment.is_ended

    @property
    def has_unread(self) -> bool:
        return self.is_completed or (self._durable > self._tried and not self._segment.is_ended)

    @property
    def is_begun(self) -> bool:
        return self.is_completed or self._durable > 0 or self.position > 0

    @property
    def end(self) -> int:
        """The end of what is durable; of a compressed segment that is complete roughly. FileNotFoundError."""
        return self.file.path.stat().st_size if self.is_completed else self._durable

    def relocate(self, file: SegmentFile) -> None:
        """It lies elsewhere now; what is open stays open."""
        self.file = file
        self._segment.path = file.path

    def extend(self, index: CdcIndex, size: int) -> None:
        """Take what its index says now; `size` is the file's. The number of a completed segment means nothing but that
        a node that crashed has replayed it, if it is the size: its end may be torn then.
        """
        if index.is_completed:
            self.is_completed = True
            self._may_be_torn = index.offset == size
        elif index.offset > self._durable:
            self._durable = index.offset
            self._passed_since = None

    def is_left_behind(self) -> bool:
        """A later segment is in use, and Cassandra has let go of this one without completing it: it was flushed, and
        then the node crashed. Asked for some seconds before it is believed, for then it is read and deleted.
        """
        if self._passed_since is None:
            self._passed_since = monotonic()
        return monotonic() - self._passed_since >= LEFT_BEHIND_SECONDS and self.file.is_left_behind()

    def leave_behind(self) -> None:
        """No more will come: all that it holds is to be read, and its end may be torn."""
        log.warning("a segment was never completed: the node has crashed", file=self.file.path.name)
        self.is_completed = self._may_be_torn = True

    def entries(self) -> Iterator[CommitLogEntry]:
        """What is durable and was not read; CdcError SEGMENT_CORRUPT at what is no entry, but for a torn end.

        The file is closed at its end, and stays open if more may come.
        """
        tried = self._durable
        try:
            for event in self._segment.events(None if self.is_completed else self._durable):
                if isinstance(event, CorruptEntry):
                    self._doubt(event)
                    continue
                self._check_whole()
                self.position = event.end_position
                yield event
        except FileNotFoundError:
            return  # the next look into the folder reports it
        except FormatError as error:
            raise unreadable(self.file.path, error) from error
        self._tried = tried
        if self._torn is not None and self.is_at_end:
            log.warning(
                "the end of a segment is torn, as its node has crashed",
                file=self.file.path.name,
                position=self._torn.position,
                reason=self._torn.reason,
            )

    def close(self) -> None:
        self._segment.close()

    def _doubt(self, event: CorruptEntry) -> None:
        """It may be the torn end of a segment that the node wrote when it crashed: behind all that was durable."""
        if not self._may_be_torn or event.position < self._durable:
            raise self._damaged(event)
        self._torn = self._torn or event

    def _check_whole(self) -> None:
        """Something can be read behind what cannot: that is no torn end, unless none of it ever was durable."""
        if self._torn is not None and not self._durable:
            raise self._damaged(self._torn)

    def _damaged(self, event: CorruptEntry) -> CdcError:
        where = f"position {event.position}"
        if event.section_offset is not None:
            where += f", in the section at byte {event.section_offset} of the file"
        return damaged(self.file.path, event.reason, where)


class Tails:
    """The segments that are not finished."""

    def __init__(
        self,
        folder: Path,
        positions: Positions,
        codecs: Codecs | None = None,
        max_segment_size: int = MAX_SEGMENT_SIZE,
        spool: Spool | None = None,
    ) -> None:
        self._folder = folder
        self._spool = spool
        self._positions = positions
        self._codecs = codecs
        self._max_segment_size = max_segment_size
        self._tails: dict[int, SegmentTail] = {}

    def poll(self) -> list[SegmentTail]:
        """Those with something to read, in order: nearly always it is the end of one and the beginning of the next.

        A segment may be passed by a later one, and be read on when its index says so.
        """
        files = [file for file in self._files() if not self._positions.is_finished(file.id)]
        self._drop_vanished({file.id for file in files})
        newest = self._positions.published_up_to.segment_id
        tails = []
        for file in reversed(files):
            tail = self._look(file, is_passed=newest > file.id)
            if tail is not None and tail.has_unread:
                tails.append(tail)
            if tail is not None and tail.is_begun:
                newest = max(newest, file.id)
        return tails[::-1]

    @property
    def folder(self) -> Path:
        """The node's cdc_raw."""
        return self._folder

    def relocate(self, file: SegmentFile) -> None:
        """A segment has been moved."""
        if file.id in self._tails:
            self._tails[file.id].relocate(file)

    def bytes_behind(self) -> int:
        """What is durable and not acknowledged, as the last poll saw it."""
        total = 0
        for segment, tail in self._tails.items():
            with suppress(FileNotFoundError):
                if not self._positions.is_finished(segment):
                    total += max(0, tail.end - self._positions.resume_at(segment))
        return total

    def _files(self) -> list[SegmentFile]:
        """In order; one that is in the spool, too, is whole there."""
        here = segments(self._folder)
        spooled = {file.id: file for file in self._spool.files()} if self._spool else {}
        return sorted([*spooled.values(), *(file for file in here if file.id not in spooled)]) if spooled else here

    def _look(self, file: SegmentFile, *, is_passed: bool) -> SegmentTail | None:
        tail = self._tails.get(file.id)
        if tail is None:
            resume_from = self._positions.resume_at(file.id)
            tail = self._tails[file.id] = SegmentTail(file, resume_from, self._codecs, self._max_segment_size)
        elif tail.file != file:
            tail.relocate(file)
        if tail.is_at_end:
            return None
        try:
            self._update(tail, is_passed=is_passed)
        except FileNotFoundError:
            return None  # the next look into the folder reports it
        return tail

    def _update(self, tail: SegmentTail, *, is_passed: bool) -> None:
        index = read_index(tail.file)
        if index is None:
            return
        if is_passed and not (index.is_completed or tail.is_completed) and tail.is_left_behind():
            index = read_index(tail.file)  # Cassandra completes a segment before it lets go of it
            if index is not None and not index.is_completed:
                tail.leave_behind()
        if index is not None:
            tail.extend(index, tail.file.path.stat().st_size)

    def _drop_vanished(self, present: set[int]) -> None:
        for segment in [segment for segment in self._tails if segment not in present]:
            tail = self._tails.pop(segment)
            tail.close()
            if tail.is_begun and not tail.is_at_end:
                log.error("a segment vanished before it was wholly published", file=tail.file.path.name)
