"""Commit log segments of version 7 as Cassandra lays them out, made by hand."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from pathlib import Path

SEGMENT_SIZE = 64 * 1024


class SegmentFileBuilder:
    """A segment that grows in `folder` as a live one does: preallocated with zeroes, its index after each sync, and a
    link to it in the commit log's own folder.
    """

    def __init__(self, folder: Path, segment: int, size: int = SEGMENT_SIZE) -> None:
        self.segment = segment
        self.path = folder / f"CommitLog-7-{segment}.log"
        self.index_path = folder / f"CommitLog-7-{segment}_cdc.idx"
        parameters = b"{}"
        crc = crc32(struct.pack(">iIIi", 7, segment & 0xFFFFFFFF, segment >> 32, len(parameters)))
        head = struct.pack(">iqH", 7, segment, len(parameters)) + parameters
        self._content = bytearray(head + struct.pack(">I", crc32(parameters, crc)))
        self._marker = len(self._content)
        self._content += bytes(8)
        self._size = size
        self._write()
        self._own_link = folder.with_name(f"{folder.name}-commitlog") / self.path.name
        self._own_link.parent.mkdir(exist_ok=True)
        self._own_link.hardlink_to(self.path)

    def let_go(self) -> None:
        """CommitLogSegmentManagerCDC: the commit log needs it no more."""
        self._own_link.unlink()

    def append(self, mutation: bytes) -> int:
        """The position after it."""
        size = struct.pack(">I", len(mutation))
        crc = crc32(size)
        self._content += size + struct.pack(">I", crc) + mutation + struct.pack(">I", crc32(mutation, crc))
        return len(self._content)

    def sync(self, *, complete: bool = False) -> int:
        """CommitLogSegment.sync: the durable offset."""
        end = len(self._content)
        if end > self._marker + 8:
            low, high = self.segment & 0xFFFFFFFF, self.segment >> 32
            struct.pack_into(
                ">II", self._content, self._marker, end, crc32(struct.pack(">III", low, high, self._marker))
            )
            self._marker = end
            self._content += bytes(8)
        self._write()
        self.index_path.write_text(f"{end}\nCOMPLETED" if complete else f"{end}")
        return end

    def _write(self) -> None:
        self.path.write_bytes(bytes(self._content).ljust(self._size, b"\x00"))


def mutation(number: int, size: int = 24) -> bytes:
    """Recognisable bytes: the log does not parse them."""
    return struct.pack(">I", number).ljust(size, b"m")
