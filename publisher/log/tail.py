"""Follows the segments in cdc_raw: reads what is durable as Cassandra writes them (4.0+) or releases them (3.11)."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

import structlog

from cassandra_storage.files.segments import OpenBatchedSegment
from cassandra_storage.formats.commitlog.segment import MAX_SEGMENT_SIZE, CommitLogEntry, CorruptEntry
from cassandra_storage.formats.errors import FormatError
from publisher.log.batch_reader import BatchReader
from publisher.log.cdc_raw import damage_error, list_cdc_segments, read_index, refused_error, unreadable_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cassandra_storage.files.segments import SegmentFile
    from cassandra_storage.formats.commitlog.descriptor import CdcIndex
    from cassandra_storage.formats.commitlog.sections import Codecs
    from cassandra_storage.formats.commitlog.segment import CommitLogPosition
    from cdc_common.errors.codes import CdcError
    from publisher.log.batch_reader import SplitEntries, Splitter
    from publisher.log.position import Positions
    from publisher.log.spool import Spool

ABANDONED_SECONDS = 10.0

log = structlog.get_logger(__name__)


class SegmentTail:
    """Reads one segment from the acknowledged position on. `position`: all before it has been read."""

    def __init__(self, file: SegmentFile, resume_from: int, codecs: Codecs | None, max_segment_size: int) -> None:
        self.file = file
        self.position = resume_from
        self.is_completed = False
        self._reader = BatchReader(file.path.name, resume_from, codecs=codecs, max_segment_size=max_segment_size)
        self._segment = OpenBatchedSegment(file.path, self._reader)
        self._durable = 0
        self._tried_up_to = 0
        self._may_have_torn_end = False
        self._torn_end: CorruptEntry | None = None
        self._passed_since: float | None = None

    @property
    def messaging_version(self) -> int:
        """The version of its mutations; known once some of it has been read."""
        return self._segment.descriptor.messaging_version if self._segment.descriptor else 0

    @property
    def is_at_end(self) -> bool:
        """All of it has been read, and nothing will be added."""
        return self.is_completed and self._segment.is_ended

    @property
    def has_unread(self) -> bool:
        return self.is_completed or (self._durable > self._tried_up_to and not self._segment.is_ended)

    @property
    def is_begun(self) -> bool:
        return self.is_completed or self._durable > 0 or self.position > 0

    @property
    def end(self) -> int:
        """The end of the durable part; approximate for a complete compressed segment. FileNotFoundError."""
        return self.file.path.stat().st_size if self.is_completed else self._durable

    def relocate(self, file: SegmentFile) -> None:
        """The segment has moved; an open file stays open."""
        self.file = file
        self._segment.path = file.path

    def extend(self, index: CdcIndex, size: int) -> None:
        """Take the durable offset from the index; `size`: of the file. The offset of a completed segment means nothing,
        except if it equals the size: then a node has replayed the segment after a crash, and its end may be torn.
        """
        if index.is_completed:
            self.is_completed = True
            self._may_have_torn_end = index.offset == size
        elif index.offset > self._durable:
            self._durable = index.offset
            self._passed_since = None

    def extend_as(self, other: SegmentTail) -> None:
        """Take how far another tail of the segment knows it to be durable."""
        self.is_completed, self._may_have_torn_end = other.is_completed, other._may_have_torn_end
        self._durable = other._durable

    def is_abandoned(self) -> bool:
        """A later segment is active, and Cassandra has released this one without completing it: the node flushed it and
        then crashed. This must be so for ABANDONED_SECONDS, as the segment is then read and deleted.
        """
        if self._passed_since is None:
            self._passed_since = monotonic()
        return monotonic() - self._passed_since >= ABANDONED_SECONDS and self.file.is_left_behind()

    def mark_abandoned(self) -> None:
        """Note that nothing will be added to the segment: read all of it; its end may be torn."""
        log.warning("a segment was never completed because the node crashed", file=self.file.path.name)
        self.is_completed = self._may_have_torn_end = True

    def entries(self) -> Iterator[CommitLogEntry]:
        """The durable entries that were not read yet; see `events`."""
        return (event for event in self.events(None) if isinstance(event, CommitLogEntry))

    def events(self, splitter: Splitter | None) -> Iterator[CommitLogEntry | SplitEntries]:
        """The durable entries that were not read yet, in order: those that the splitter takes are split, many at once.
        Each event is valid until the next one is asked for. CdcError SEGMENT_CORRUPT at invalid data, except at a torn
        end.

        The file is closed at its end, and stays open if more may be added.
        """
        tried = self._durable
        self._reader.splitter = splitter
        try:
            for event in self._segment.events(None if self.is_completed else self._durable):
                if isinstance(event, CorruptEntry):
                    self._accept_torn_end(event)
                    continue
                self._check_not_torn()
                self.position = event.end_position
                yield event
        except FileNotFoundError:
            return  # the next poll reports it
        except FormatError as error:
            raise unreadable_error(self.file.path, error) from error
        except OSError as error:
            raise refused_error(self.file.path, error) from error
        self._tried_up_to = tried
        if self._torn_end is not None and self.is_at_end:
            log.warning(
                "the end of a segment is torn because the node crashed",
                file=self.file.path.name,
                position=self._torn_end.position,
                reason=self._torn_end.reason,
            )

    def close(self) -> None:
        self._segment.close()

    def _accept_torn_end(self, event: CorruptEntry) -> None:
        """A node that crashed may leave a torn end, but only after all that was durable."""
        if not self._may_have_torn_end or event.position < self._durable:
            raise self._damaged(event)
        self._torn_end = self._torn_end or event

    def _check_not_torn(self) -> None:
        """A readable entry after an unreadable one means damage, not a torn end, unless no part was ever durable."""
        if self._torn_end is not None and not self._durable:
            raise self._damaged(self._torn_end)

    def _damaged(self, event: CorruptEntry) -> CdcError:
        where = f"position {event.position}"
        if event.section_offset is not None:
            where += f", in the section at byte {event.section_offset} of the file"
        return damage_error(self.file.path, event.reason, where)


class SegmentTails:
    """A tail for each segment that is not finished."""

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
        self._begun_before = positions.begun()
        self._lost: list[int] = []

    def poll(self) -> list[SegmentTail]:
        """The tails with something to read, in order. Nearly always these are the end of one and the start of the next.

        A later segment may be read before the index of an earlier one shows its rest.
        """
        files = [file for file in self._files() if not self._positions.is_finished(file.id)]
        self._drop_vanished({file.id for file in files})
        newest = self._positions.published_up_to.segment_id
        tails = []
        for file in reversed(files):
            tail = self._update_tail(file, is_passed=newest > file.id)
            if tail is not None and tail.has_unread:
                tails.append(tail)
            if tail is not None and tail.is_begun:
                newest = max(newest, file.id)
        return tails[::-1]

    def take_lost(self) -> list[int]:
        """The segments that disappeared before they were completely published, as the polls since the last call saw."""
        lost, self._lost = self._lost, []
        return lost

    @property
    def folder(self) -> Path:
        """The node's cdc_raw."""
        return self._folder

    def relocate(self, file: SegmentFile) -> None:
        """A segment has been moved."""
        if file.id in self._tails:
            self._tails[file.id].relocate(file)

    def has_lost(self, segment: int) -> bool:
        """Return whether one of the segments from this one on was finished and is no longer there."""
        present = {file.id for file in self._files()}
        return any(finished not in present for finished in self._positions.finished_from(segment))

    def read_again(self, after: CommitLogPosition) -> Iterator[tuple[SegmentTail, int]]:
        """New tails over what was read after a place, in order, each with the position up to which it was read.

        A segment may be moved while those before it are read.
        """
        for segment in [file.id for file in self._files()]:
            read_up_to = self.read_up_to(segment)
            start = after.position if segment == after.segment_id else 0
            if segment < after.segment_id or read_up_to <= start:
                continue
            again = self.open_again(segment, start)
            if again is None:
                continue
            try:
                yield again, read_up_to
            finally:
                again.close()

    def read_up_to(self, segment: int) -> int:
        """The position up to which the segment has been read; the largest one if all of it is read."""
        tail = self._tails.get(segment)
        if self._positions.is_finished(segment) or (tail is not None and tail.is_at_end):
            return self._max_segment_size
        return 0 if tail is None else tail.position

    def open_again(self, segment: int, start: int) -> SegmentTail | None:
        """A new tail over what has been read of a segment from a position on; None if the segment is gone.

        The index of a segment that grows may say less at this moment: Cassandra truncates it, then writes it again.
        """
        file = next((candidate for candidate in self._files() if candidate.id == segment), None)
        if file is None:
            return None
        again = SegmentTail(file, start, self._codecs, self._max_segment_size)
        known = self._tails.get(segment)
        if known is not None:
            again.extend_as(known)
        elif (index := read_index(file)) is not None:
            again.extend(index, file.path.stat().st_size)
        else:
            return None
        return again

    def unacknowledged_bytes(self) -> int:
        """The durable bytes that are not acknowledged, also of segments that no poll has seen: there is none while the
        publisher waits for Kafka.
        """
        total = 0
        for file in self._files():
            if not self._positions.is_finished(file.id):
                with suppress(FileNotFoundError):
                    total += max(0, self._durable_end(file) - self._positions.resume_at(file.id))
        return total

    def _durable_end(self, file: SegmentFile) -> int:
        """The end of the segment's durable part now. FileNotFoundError."""
        tail = self._tails.get(file.id)
        if tail is not None and tail.is_completed:
            return tail.end
        index = read_index(file)
        if index is None:
            return 0 if tail is None else tail.end
        return file.path.stat().st_size if index.is_completed else index.offset

    def _files(self) -> list[SegmentFile]:
        """Return the segments in order. Of a segment in both folders, return the one in the spool, which
        is complete.
        """
        found = list_cdc_segments(self._folder)
        spooled = {file.id: file for file in self._spool.files()} if self._spool else {}
        return sorted([*spooled.values(), *(file for file in found if file.id not in spooled)]) if spooled else found

    def _update_tail(self, file: SegmentFile, *, is_passed: bool) -> SegmentTail | None:
        tail = self._tails.get(file.id)
        if tail is None:
            resume_from = self._positions.resume_at(file.id)
            tail = self._tails[file.id] = SegmentTail(file, resume_from, self._codecs, self._max_segment_size)
        elif tail.file != file:
            tail.relocate(file)
        if tail.is_at_end:
            return None
        try:
            self._read_index(tail, is_passed=is_passed)
        except FileNotFoundError:
            return None  # the next poll reports it
        return tail

    def _read_index(self, tail: SegmentTail, *, is_passed: bool) -> None:
        index = read_index(tail.file)
        if index is None:
            return
        if is_passed and not (index.is_completed or tail.is_completed) and tail.is_abandoned():
            index = read_index(tail.file)  # Cassandra completes a segment before it releases it
            if index is not None and not index.is_completed:
                tail.mark_abandoned()
        if index is not None:
            tail.extend(index, tail.file.path.stat().st_size)

    def _drop_vanished(self, present: set[int]) -> None:
        begun_before, self._begun_before = self._begun_before, []
        self._lost += [segment for segment in begun_before if segment not in present]
        for segment in [segment for segment in self._tails if segment not in present]:
            tail = self._tails.pop(segment)
            tail.close()
            if tail.is_begun and not tail.is_at_end:
                self._lost.append(segment)
