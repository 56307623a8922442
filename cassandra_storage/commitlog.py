"""Commit log segments (org.apache.cassandra.db.commitlog: CommitLogDescriptor, CommitLogSegmentReader,
CommitLogReader), without I/O.

A segment is a descriptor, then sections, each behind a sync marker that says where the next marker is; a section is
entries: size, CRC of the size, mutation, CRC of size and mutation. Zeroes follow the last section.
"""

from __future__ import annotations

import json
import re
import struct
from typing import NamedTuple, TypeAlias
from zlib import crc32

from cassandra_storage.errors import FormatError
from cassandra_storage.versions import commit_log_format

_FILE_NAME = re.compile(r"CommitLog-(\d{1,9})-(\d{1,18})\.log")
_INDEX_SUFFIX = "_cdc.idx"
_DESCRIPTOR_START = struct.Struct(">iqH")
_INTS = struct.Struct(">II")
_MARKER_SIZE = 8
_ENTRY_HEAD = 8  # size and its CRC
_ENTRY_OVERHEAD = 12  # and the CRC at the end
_MIN_MUTATION = 10  # CommitLogReader: less is not believed (CASSANDRA-2128)


class CommitLogPosition(NamedTuple):
    """CommitLogPosition: an offset in a segment; ordered by segment, then offset."""

    segment_id: int
    position: int


class CommitLogDescriptor(NamedTuple):
    """CommitLogDescriptor of a plain segment; `size` is the bytes it takes."""

    version: int
    id: int
    messaging_version: int
    size: int


class CommitLogEntry(NamedTuple):
    """One mutation. `end_position` is what Cassandra calls the mutation's position, and where to resume behind it."""

    position: int
    end_position: int
    mutation: bytes


class CorruptEntry(NamedTuple):
    """Bytes that hold no readable entry. `mutation`: its bytes where the size was right but a CRC was not; None where
    all of `position` .. `end_position` cannot be told apart.
    """

    position: int
    end_position: int
    reason: str
    mutation: bytes | None = None


class CdcIndex(NamedTuple):
    """What a `_cdc.idx` file says: up to which logical offset the segment is durable, and whether it is finished. Once
    `is_completed` the offset is to be ignored: read to the zero marker or the end of the file.
    """

    offset: int
    is_completed: bool


Event: TypeAlias = CommitLogEntry | CorruptEntry


def parse_file_name(name: str) -> tuple[int, int]:
    """CommitLogDescriptor.fromFileName: (version, segment id) of `CommitLog-<version>-<id>.log`."""
    match = _FILE_NAME.fullmatch(name)
    if match is None:
        raise FormatError("not the name of a commit log segment", segment=name)
    return int(match[1]), int(match[2])


def index_file_name(name: str) -> str:
    """CommitLogDescriptor.cdcIndexFileName: the name of the `_cdc.idx` file of a segment's file."""
    return name.removesuffix(".log") + _INDEX_SUFFIX


def parse_cdc_index(content: bytes) -> CdcIndex | None:
    """A `_cdc.idx` file; None if it is empty (it is truncated before it is written again)."""
    if not content.strip():
        return None
    offset, _, rest = content.partition(b"\n")
    if not offset.isdigit() or len(offset) > 10 or not b"COMPLETED".startswith(rest.strip()):
        raise FormatError("not a _cdc.idx file")
    return CdcIndex(int(offset), rest.strip() == b"COMPLETED")


def read_descriptor(buf: bytes) -> CommitLogDescriptor | None:
    """CommitLogDescriptor.readHeader of a segment's first bytes; None if more of them are needed (also while they are
    still zero). FormatError if it is damaged, of another version, compressed or encrypted.
    """
    if len(buf) < _DESCRIPTOR_START.size:
        return None
    version, segment_id, length = _DESCRIPTOR_START.unpack_from(buf)
    if version == 0 and segment_id == 0:
        return None
    end = _DESCRIPTOR_START.size + length
    if len(buf) < end + 4:
        return None
    parameters = buf[_DESCRIPTOR_START.size : end]
    crc = crc32(struct.pack(">iIIi", version, segment_id & 0xFFFFFFFF, segment_id >> 32 & 0xFFFFFFFF, length))
    if crc32(parameters, crc) != int.from_bytes(buf[end : end + 4], "big"):
        raise FormatError("segment descriptor with a wrong CRC", position=0)
    log_format = commit_log_format(version)
    _check_parameters(parameters)
    return CommitLogDescriptor(version, segment_id, log_format.messaging_version, end + 4)


def _check_parameters(parameters: bytes) -> None:
    try:
        values = json.loads(parameters or b"{}")
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise FormatError("segment descriptor with parameters that are no JSON object", position=14)
    if "compressionClass" in values:
        raise FormatError(f"segment compressed by {values['compressionClass']} is not supported", position=14)
    if "encCipher" in values:
        raise FormatError("encrypted segment is not supported", position=14)


class SegmentReader:
    """Walks one segment. It holds a place in it and no bytes: the caller reads the file where the reader says.

    `position` is the file's first byte that it has not used, `wanted` how many bytes from there it needs at least.

        while not reader.is_ended:
            data = file.read(max(window, reader.wanted)) at reader.position, not past what is durable
            for event in reader.read(data, length): ...

    Give it only bytes that will not change: while the segment is written, up to the offset of its `_cdc.idx`. If
    neither `position` nor `wanted` changes, wait until there are more. Only once the segment is completed give
    `length`, the file's size: till then all that looks unfinished is waited for, from then on it is the end or corrupt.

    To go on after a restart, give the `end_position` of the last entry that is done with as `resume_from`: sections
    before it are stepped over by their markers, so `position` still begins at 0 but little is read.
    """

    __slots__ = ("_resume_from", "_section_end", "descriptor", "is_ended", "name", "position", "segment_id", "wanted")

    def __init__(self, name: str, resume_from: int = 0) -> None:
        _, self.segment_id = parse_file_name(name)
        self.name = name
        self.descriptor: CommitLogDescriptor | None = None
        self.position = 0
        self.wanted = _DESCRIPTOR_START.size + 4
        self.is_ended = False
        self._section_end = 0
        self._resume_from = resume_from

    def read(self, data: bytes, length: int | None = None) -> list[Event]:
        """The events in `data`, the file's bytes from `position` on; both move behind what was used.

        FormatError (with the file's name) if the descriptor cannot be read: then there is nothing to be had.
        """
        events: list[Event] = []
        base = self.position
        if self.descriptor is None and not self._read_descriptor(data, length):
            return events
        while not self.is_ended:
            before = self.position
            if before == self._section_end:
                self._read_marker(data, base, length, events)
            else:
                self._read_entries(data, base, events)
            if self.position == before:
                break
        return events

    def _read_descriptor(self, data: bytes, length: int | None) -> bool:
        try:
            descriptor = read_descriptor(data)
        except FormatError as error:
            error.segment = self.name
            raise
        if descriptor is None:
            if len(data) >= _DESCRIPTOR_START.size:
                self.wanted = _DESCRIPTOR_START.size + _DESCRIPTOR_START.unpack_from(data)[2] + 4
            if length is not None and len(data) >= min(length, self.wanted):
                raise FormatError("segment without a descriptor", position=0, segment=self.name)
            return False
        if descriptor.id != self.segment_id:
            raise FormatError(f"segment id {descriptor.id} in the descriptor", position=0, segment=self.name)
        self.descriptor = descriptor
        self.position = self._section_end = descriptor.size
        self.wanted = _MARKER_SIZE
        return True

    def _read_marker(self, data: bytes, base: int, length: int | None, events: list[Event]) -> None:
        """CommitLogSegmentReader.readSyncMarker."""
        here = self.position
        self.wanted = _MARKER_SIZE
        if length is not None and here + _MARKER_SIZE > length:
            self.is_ended = True
            return
        if here - base + _MARKER_SIZE > len(data):
            return
        end, crc = _INTS.unpack_from(data, here - base)
        low, high = self.segment_id & 0xFFFFFFFF, self.segment_id >> 32
        is_whole = crc == crc32(struct.pack(">III", low, high, here))
        if length is None:
            if not is_whole or end < here + _MARKER_SIZE:
                return  # not written yet, or not wholly
        elif end == 0 and crc == 0:
            self.is_ended = True
            return
        elif not (is_whole or crc == 0) or not here + _MARKER_SIZE <= end <= length:
            # crc == 0: the marker was torn by a crash, and the entries' own CRCs tell what is good
            events.append(CorruptEntry(here, length, "bad sync marker"))
            self.is_ended = True
            return
        self._section_end = end
        self.position = min(max(here + _MARKER_SIZE, self._resume_from), end)

    def _read_entries(self, data: bytes, base: int, events: list[Event]) -> None:
        """CommitLogReader.readSection, as far as `data` goes."""
        here, section_end = self.position, self._section_end
        available = base + len(data)
        while here < section_end:
            self.position, self.wanted = here, min(_ENTRY_HEAD, section_end - here)
            if here + self.wanted > available:
                return
            size = int.from_bytes(data[here - base : here - base + 4], "big")
            if size == 0 or section_end - here < 4:
                self.is_ended = True  # zeroes up to the end of the file
                return
            start = here - base + _ENTRY_HEAD
            end = here + _ENTRY_OVERHEAD + size
            crc = crc32(data[start - _ENTRY_HEAD : start - 4])
            if (
                not _MIN_MUTATION <= size <= 0x7FFFFFFF
                or end > section_end
                or crc != _INTS.unpack_from(data, start - 8)[1]
            ):
                events.append(CorruptEntry(here, section_end, "bad entry size"))
                break
            if end > available:
                self.wanted = end - here
                return
            mutation = data[start : start + size]
            if crc32(mutation, crc) == int.from_bytes(data[start + size : start + size + 4], "big"):
                events.append(CommitLogEntry(here, end, mutation))
            else:
                events.append(CorruptEntry(here, end, "bad mutation CRC", mutation))
            here = end
        self.position, self.wanted = section_end, _MARKER_SIZE
