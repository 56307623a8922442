"""Commit log segments (org.apache.cassandra.db.commitlog: CommitLogDescriptor, CommitLogSegmentReader,
CommitLogReader), without I/O.

A segment is a descriptor, then sections, each after a sync marker that says where the next marker is; a section is
entries: size, CRC of the size, mutation, CRC of size and mutation. Zeroes follow the last section. The sections of some
segments are compressed or encrypted (sections): in those, every position, also that of a `_cdc.idx`, is a
position in the plain form of the segment, not in the file. Both are counted from the file's start.

Entries have the positions that CommitLogReader gives them. They differ only after a section that cannot be decoded:
CommitLogReader then counts as if that section were not there, and this reader counts like the writer.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Generic, NamedTuple, NoReturn, TypeAlias, TypeVar
from zlib import crc32

from cassandra_storage.formats.commitlog.descriptor import descriptor_size, parse_file_name, read_descriptor
from cassandra_storage.formats.commitlog.sections import Codecs, NoCodecs, section_decoder
from cassandra_storage.formats.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cassandra_storage.formats.commitlog.descriptor import CommitLogDescriptor
    from cassandra_storage.formats.commitlog.sections import SectionDecoder

_INTS = struct.Struct(">II")
_MARKER_SIZE = 8
_ENTRY_HEAD = 8  # size and its CRC
_ENTRY_OVERHEAD = 12  # and the CRC at the end
_MIN_MUTATION = 10  # CommitLogReader: less is not believed (CASSANDRA-2128)
_SECTION_HEAD = 12  # of a coded section: its marker and the length of its content
_BATCH = 1 << 20  # bytes of a coded section's entries that are handed out at once
MAX_SEGMENT_SIZE = 128 << 20  # four times commitlog_segment_size by default


class CommitLogPosition(NamedTuple):
    """CommitLogPosition: an offset in a segment; ordered by segment, then offset."""

    # The id of the segment.
    segment_id: int
    # The offset in the segment, in bytes.
    position: int


class CommitLogEntry(NamedTuple):
    """One mutation."""

    # The offset at which its entry begins.
    position: int
    # The offset after its entry. Cassandra calls it the mutation's position. Reading resumes there.
    end_position: int
    # The serialized mutation.
    mutation: bytes


class CorruptEntry(NamedTuple):
    """Bytes that hold no readable entry."""

    # The offset at which they begin.
    position: int
    # The offset after them; `position` if their length is not known.
    end_position: int
    # The first thing about them that is wrong.
    reason: str
    # The bytes where the size was right but a CRC was not; None where entries up to `end_position` cannot be separated.
    mutation: bytes | None = None
    # The offset in the file at which its section begins, if that is compressed or encrypted.
    section_offset: int | None = None
    # Whether the sync marker is good, but the file too short for it.
    is_truncation: bool = False


Event: TypeAlias = CommitLogEntry | CorruptEntry
BatchT = TypeVar("BatchT")


class BatchedReader(Generic[BatchT]):
    """Reads one segment, and yields its events. A subclass may read many entries at once, and yield a batch for them.
    It stores a position but no bytes: the caller reads the file at that position.

    `position` is the file position of the first byte that is not used yet (not an entry's position in compressed and
    encrypted segments, see above). `wanted` is the minimum number of bytes that it needs from there, `sections` the
    number of sections read.

        while not reader.is_ended:
            data = file.read(max(window, reader.wanted)) at reader.position
            for event in reader.read(data, length, durable=durable): ...

    While Cassandra writes the segment, pass `durable`, the offset in its `_cdc.idx`: bytes after it may change and are
    not read. If neither `position` nor `wanted` changes, wait for more bytes. Once the segment is completed, pass
    `length`, the file's size, and no `durable`: unfinished content is then the end of the segment, or corrupt.

    To continue after a restart, pass the `end_position` of the last processed entry as `resume_from`. Sections before
    it are skipped by their markers, so `position` begins at 0 but little is read.

    `max_segment_size`: the writer's commitlog_segment_size, or more. A section, compressed or not, is at most this
    large, and a mutation at most half of it (`max_mutation`, as max_mutation_size). Anything that claims more is
    corrupt.
    """

    __slots__ = (
        "_codecs",
        "_decode",
        "_has_overrun",
        "_logical",
        "_max_section",
        "_resume_from",
        "_section_end",
        "descriptor",
        "is_ended",
        "max_mutation",
        "name",
        "position",
        "sections",
        "segment_id",
        "wanted",
    )

    def __init__(
        self,
        name: str,
        resume_from: int = 0,
        *,
        codecs: Codecs | None = None,
        max_segment_size: int = MAX_SEGMENT_SIZE,
    ) -> None:
        _, self.segment_id = parse_file_name(name)
        self.name = name
        self.descriptor: CommitLogDescriptor | None = None
        self.position = 0
        self.wanted = descriptor_size(b"")
        self.is_ended = False
        self.sections = 0
        self._codecs = codecs or NoCodecs()
        self._decode: SectionDecoder | None = None
        self._logical = 0  # of a coded segment: where the marker at `position` would be in a plain one
        self._section_end = 0
        self._has_overrun = False
        self._resume_from = resume_from
        self._max_section = max_segment_size
        self.max_mutation = max_segment_size // 2 - _ENTRY_OVERHEAD

    @property
    def is_coded(self) -> bool:
        """Return whether the sections are compressed or encrypted; known once the descriptor is read."""
        return self._decode is not None

    def read(self, data: bytes, length: int | None = None, *, durable: int | None = None) -> Iterable[Event | BatchT]:
        """The events in `data`, the file's bytes from `position` on; both advance past the bytes used. Take all of them
        before the next call.

        FormatError (with the file's name) if the descriptor cannot be read: then there are no events.
        """
        base = self.position
        if self.descriptor is None and not self._read_descriptor(data, length):
            return ()
        if self._decode is not None:
            return self._read_decoded(data, base, self._decode, durable, length)
        if durable is not None and base + len(data) > durable:
            data = data[: max(durable - base, 0)]
        return self._read_plain(data, base, length)

    def _read_plain(self, data: bytes, base: int, length: int | None) -> Iterator[Event | BatchT]:
        """The entries of plain sections, as far as they are in `data`."""
        while not self.is_ended:
            before = self.position
            events: list[Event | BatchT] = []
            if before == self._section_end:
                end = self._read_marker(data, base, length, events)
                if end:
                    self.sections += 1
                    self._section_end = end
                    self.position = min(max(before + _MARKER_SIZE, self._resume_from), end)
            else:
                end = self._section_end
                # No checksum covers a section's end: that may be damaged and an entry reach past it, but only one.
                limit = end if length is None or self._has_overrun else length
                here, wanted = self.read_entries(data, base, before, end, limit, end, events)
                self._has_overrun |= here > end
                self.position = min(here, end)
                self.wanted = wanted or _MARKER_SIZE
            yield from events
            if self.position == before:
                return

    def _read_descriptor(self, data: bytes, length: int | None) -> bool:
        try:
            descriptor = read_descriptor(data)
            if descriptor is not None:
                self._decode = section_decoder(descriptor.compression, descriptor.encryption, self._codecs)
        except FormatError as error:
            error.segment = self.name
            raise
        if descriptor is None:
            self.wanted = descriptor_size(data)
            if length is not None and len(data) >= min(length, self.wanted):
                raise FormatError("segment without a descriptor", position=0, segment=self.name)
            return False
        if descriptor.id != self.segment_id:
            raise FormatError(f"segment id {descriptor.id} in the descriptor", position=0, segment=self.name)
        self.descriptor = descriptor
        self.position = self._section_end = self._logical = descriptor.size
        self.wanted = _MARKER_SIZE
        return True

    def _read_marker(self, data: bytes, base: int, length: int | None, events: list[Event | BatchT]) -> int:
        """CommitLogSegmentReader.readSyncMarker: where in the file the section at `position` ends; 0 if that is not
        known yet, or never will be.
        """
        here = self.position
        self.wanted = _MARKER_SIZE
        if length is not None and here + _MARKER_SIZE > length:
            self.is_ended = True
            return 0
        if here - base + _MARKER_SIZE > len(data):
            return 0
        end: int
        end, crc = _INTS.unpack_from(data, here - base)
        low, high = self.segment_id & 0xFFFFFFFF, self.segment_id >> 32
        is_whole = crc == crc32(struct.pack(">III", low, high, here))
        if length is None:
            return end if is_whole and end >= here + _MARKER_SIZE else 0  # otherwise not written yet, or only in part
        if end == 0 and crc == 0:
            self.is_ended = True
            return 0
        # crc == 0: the marker was torn by a crash, and the entries' own CRCs tell what is good. A coded section, which
        # is written with its marker, is not torn so.
        is_trusted = is_whole or (crc == 0 and self._decode is None)
        if is_trusted and here + _MARKER_SIZE <= end <= length:
            return end
        reaches_past = is_whole and end > length
        reason = "section reaches past the end of the file" if reaches_past else "bad sync marker"
        if self._decode is None:
            events.append(CorruptEntry(here, length, reason, is_truncation=reaches_past))
        else:
            logical = self._logical
            events.append(CorruptEntry(logical, logical, reason, section_offset=here, is_truncation=reaches_past))
        self.is_ended = True
        return 0

    def _read_decoded(
        self, data: bytes, base: int, decode: SectionDecoder, durable: int | None, length: int | None
    ) -> Iterator[Event | BatchT]:
        """The sections that are complete in `data`: CompressedSegmenter.nextSegment or EncryptedSegmenter's."""
        while not self.is_ended:
            here, start = self.position, self._logical + _MARKER_SIZE
            complaints: list[Event | BatchT] = []
            end = self._read_marker(data, base, length, complaints)
            yield from complaints
            if not end:
                return
            self.wanted = min(_SECTION_HEAD, end - here)
            if here + self.wanted - base > len(data):
                return
            size = int.from_bytes(data[here + _MARKER_SIZE - base : here + _SECTION_HEAD - base], "big")
            if max(size, (end - here) // 2) > self._max_section:
                reason = f"section of {end - here} bytes for {size}"
                yield CorruptEntry(self._logical, self._logical, reason, section_offset=here)
            else:
                if durable is not None and start + size > durable:
                    return
                if start + size > self._resume_from:
                    self.wanted = end - here
                    if end - base > len(data):
                        return
                    yield from self._decoded_entries(
                        data[here - base + _SECTION_HEAD : end - base], start, size, decode
                    )
                self._logical = start + size
            self.sections += 1
            self.position, self.wanted = end, _MARKER_SIZE

    def _decoded_entries(self, coded: bytes, start: int, size: int, decode: SectionDecoder) -> Iterator[Event | BatchT]:
        """The entries of a section whose content begins at `start` and is `size` long."""
        end = start + size
        if not size and not coded:
            return  # DeflateCompressor makes nothing of nothing: not even an empty stream
        content, error = decode(coded, size)
        until = min(end, start + len(content))
        here, wanted = min(max(start, self._resume_from), end), 0
        while here < until and not wanted and not self.is_ended:
            events: list[Event | BatchT] = []
            here, wanted = self.read_entries(content, start, here, end, end, min(here + _BATCH, until), events)
            for event in events:
                if isinstance(event, CorruptEntry):
                    yield event._replace(section_offset=self.position)
                else:
                    yield event
        if error is not None:
            yield CorruptEntry(here, end, error.reason, section_offset=self.position)
        elif wanted:
            yield CorruptEntry(here, end, "section ends inside an entry", section_offset=self.position)

    def read_entries(  # noqa: PLR0913, PLR0917  the hottest loop: no object for its arguments
        self, data: bytes, base: int, here: int, section_end: int, limit: int, until: int, events: list[Event | BatchT]
    ) -> tuple[int, int]:
        """CommitLogReader.readSection of `data`, which begins at position `base`: entries from `here` on that begin
        before `until`, and end at `limit` at most. (where it stopped, how many bytes from there are needed to go on; 0
        if it was not for bytes). A subclass may read some entries in another way, and yield batches for them.
        """
        available = base + len(data)
        while here < until:
            if section_end - here < 4:
                self.is_ended = True  # no room for another
                return here, 0
            wanted = min(_ENTRY_HEAD, limit - here)
            if here + wanted > available:
                return here, wanted
            at = here - base
            size_bytes, start = data[at : at + 4], at + _ENTRY_HEAD
            size = int.from_bytes(size_bytes, "big")
            if size == 0:
                self.is_ended = True  # zeroes up to the end of the file
                return here, 0
            end = here + _ENTRY_OVERHEAD + size
            crc = crc32(size_bytes)
            is_sound = crc == int.from_bytes(data[at + 4 : start], "big")
            if not is_sound or not _MIN_MUTATION <= size <= self.max_mutation or end > limit:
                is_large = is_sound and size > self.max_mutation
                reason = f"entry of {size} bytes, more than {self.max_mutation}" if is_large else "bad entry size"
                events.append(CorruptEntry(here, section_end, reason))
                return section_end, 0
            if end > available:
                return here, end - here
            mutation = data[start : start + size]
            if crc32(mutation, crc) == int.from_bytes(data[start + size : start + size + 4], "big"):
                events.append(CommitLogEntry(here, end, mutation))
            else:
                events.append(CorruptEntry(here, end, "bad mutation CRC", mutation))
            here = end
        return here, 0


class SegmentReader(BatchedReader[NoReturn]):
    """Reads one segment, entry by entry."""

    __slots__ = ()
