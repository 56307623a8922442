"""Measure how full a node's newest commit log segment is, from its sync markers alone.

It may be of any version, plain, compressed or encrypted. A marker holds the place of the next one; in compressed and
encrypted segments the uncompressed length of the section follows it (CommitLogSegmentReader). The fill counts in those
uncompressed bytes: Cassandra ends a segment once it has allocated that many.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.files.segments import SegmentFile, list_segments, read_descriptor_of
from cassandra_storage.formats.errors import FormatError
from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from pathlib import Path


_MARKER = struct.Struct(">iII")  # next marker, CRC, and in compressed and encrypted segments the uncompressed length
_MARKER_SIZE = 8


class SegmentFill(NamedTuple):
    """The fill level of a segment."""

    # The segment's file.
    file: SegmentFile
    # its bytes, uncompressed, as of the last sync
    written: int
    # offset of the next sync marker in the file
    marker: int
    # Whether it is neither compressed nor encrypted.
    is_plain: bool


def newest_fill(folder: Path, known: SegmentFill | None) -> SegmentFill | None:
    """The newest segment with a write (Cassandra creates one ahead), read on from where it was `known`."""
    for file in reversed(segment_files(folder)):
        try:
            fill = _fill(file, known if known is not None and known.file == file else None)
        except FileNotFoundError:
            continue  # Cassandra removed it since the listing
        except OSError as error:
            raise _unreadable(file.path, error) from error
        if fill is not None:
            return fill
    return None


def folder_bytes(folder: Path) -> int:
    """The sizes of a folder's files, as Cassandra's DirectorySizeCalculator counts them."""
    total = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    total += entry.stat().st_size
                except FileNotFoundError:
                    continue
    except OSError as error:
        raise _unreadable(folder, error) from error
    return total


def segment_files(folder: Path) -> list[SegmentFile]:
    """The folder's segments, in the order in which they were begun."""
    try:
        return list_segments(folder)
    except OSError as error:
        raise _unreadable(folder, error) from error


def _fill(file: SegmentFile, known: SegmentFill | None) -> SegmentFill | None:
    """None for a segment without a section."""
    known = known or _begin(file)
    if known is None:
        return None
    marker, written = known.marker, known.written
    with file.path.open("rb") as content:
        while True:
            content.seek(marker)
            head = content.read(_MARKER.size)
            following, _, length = _MARKER.unpack(head.ljust(_MARKER.size, b"\0"))
            if following < marker + _MARKER_SIZE:
                break
            written = following if known.is_plain else written + length + _MARKER_SIZE
            marker = following
    return known._replace(marker=marker, written=written) if written else None


def _begin(file: SegmentFile) -> SegmentFill | None:
    """Return the fill at the file's first marker; None if the file has no descriptor yet. CdcError SEGMENT_CORRUPT."""
    try:
        descriptor = read_descriptor_of(file.path)
    except FormatError as error:
        raise CdcError(
            Code.SEGMENT_CORRUPT,
            f"{file.path} is not a commit log segment: {error.reason}.",
            "Set node.commitlog_directory to the node's commitlog_directory (cassandra.yaml).",
        ) from error
    if descriptor is None:
        return None
    is_plain = descriptor.compression is None and descriptor.encryption is None
    return SegmentFill(file, 0, descriptor.size, is_plain)


def _unreadable(path: Path, error: OSError) -> CdcError:
    return CdcError(
        Code.CDC_RAW_MISSING,
        f"{path} cannot be read: {error.strerror}.",
        "Set node.commitlog_directory and node.cdc_raw_directory to the node's (cassandra.yaml), and let the"
        " filler's user read them.",
    )
