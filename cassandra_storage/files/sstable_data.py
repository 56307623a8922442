"""Data.db of an SSTable as chunks of uncompressed data, each with its checksum verified
(org.apache.cassandra.io.util.CompressedChunkReader, io.compress.CompressionMetadata, io.util.DataIntegrityMetadata).

A compressed file has its chunks' positions in CompressionInfo.db, and after each chunk the CRC32 of its bytes in the
file. A plain one has the CRC32s of its chunks in CRC.db, after their length. At most a window of those lists is in
memory.
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import TYPE_CHECKING, Self

from cassandra_storage.files.codecs import SegmentCodecs
from cassandra_storage.formats.errors import FormatError, UnsupportedError
from cassandra_storage.formats.sstable.compression_info import MAX_HEAD, CompressionInfo, parse_compression_info
from cassandra_storage.formats.sstable.file_name import COMPRESSION_INFO, CRC, DATA
from cassandra_storage.formats.sstable.versions import UPGRADE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cassandra_storage.formats.commitlog.sections import Decompressor
    from cassandra_storage.formats.sstable.file_name import Descriptor

_CHECKSUM_SIZE = 4
_LISTED = 4096  # positions or checksums that are read at a time
_PLAIN_CHUNK = 1 << 16  # of a file without checksums
_LARGEST_CHUNK = 1 << 26  # bytes that CRC.db may say at a time
_OVERHEAD = 4096


class ComponentFile:
    """A context manager: a component that is read by position. OSError if it cannot be opened or read.

    It is closed with its last reference too: whoever opens several may fail at the second.
    """

    _handle = -1

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._handle).st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, size: int, position: int) -> bytes:
        """The bytes at that place; FormatError if the file ends before."""
        data = os.pread(self._handle, size, position)
        while len(data) < size:
            more = os.pread(self._handle, size - len(data), position + len(data))
            if not more:
                raise self.error("the file has become shorter", position + len(data))
            data += more
        return data

    def error(self, reason: str, position: int) -> FormatError:
        return FormatError(reason, position=position, segment=self.path.name)

    def close(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    __del__ = close


class _Numbers:
    """Numbers of a file, a window of them at a time."""

    def __init__(self, file: ComponentFile, form: str, start: int, count: int) -> None:
        self._file = file
        self._form = form
        self._size = struct.calcsize(f">{form}")
        self._start = start
        self._count = count
        self._first = 0
        self._window: tuple[int, ...] = ()

    def position(self, index: int) -> int:
        return self._start + index * self._size

    def __getitem__(self, index: int) -> int:
        if not self._first <= index < self._first + len(self._window):
            count = min(_LISTED, self._count - index)
            data = self._file.read(count * self._size, self.position(index))
            self._first, self._window = index, struct.unpack(f">{count}{self._form}", data)
        return self._window[index - self._first]


class DataFile:
    """A context manager: Data.db of one SSTable. `length`: of the uncompressed data."""

    length: int
    compression: CompressionInfo | None = None
    has_checksums = True

    def __init__(self, path: Path) -> None:
        self._file = ComponentFile(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self._file.size

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        """The data from `start` on. FormatError names the file, the place in it, and from where on data is lost."""
        raise NotImplementedError

    def close(self) -> None:
        self._file.close()

    def _lost(self, reason: str, position: int, first: int, end: int) -> FormatError:
        lost = f"bytes {first} to {min(end, self.length)} of the data cannot be read"
        return self._file.error(f"{reason}: {lost}", position)


class _CompressedFile(DataFile):
    def __init__(self, path: Path, info_path: Path, *, has_max_compressed_length: bool) -> None:
        super().__init__(path)
        self._info = ComponentFile(info_path)
        try:
            head = self._info.read(min(self._info.size, MAX_HEAD), 0)
            info = parse_compression_info(head, self._info.size, has_max_compressed_length=has_max_compressed_length)
            self._decompress: Decompressor = SegmentCodecs().decompressor(info.compressor)
        except UnsupportedError as error:
            raise UnsupportedError(f"{error.reason}; {UPGRADE}", segment=info_path.name) from None
        except FormatError as error:
            raise self._info.error(error.reason, error.position or 0) from None
        self.compression: CompressionInfo = info
        self.length = info.data_length
        self._offsets = _Numbers(self._info, "q", info.offsets_start, info.chunks)

    def close(self) -> None:
        super().close()
        self._info.close()

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        info = self.compression
        for index in range(start // info.chunk_length, info.used_chunks):
            chunk = self._chunk(index)
            skipped = start - index * info.chunk_length
            yield chunk[skipped:] if skipped > 0 else chunk

    def _chunk(self, index: int) -> bytes:
        info = self.compression
        first = index * info.chunk_length
        expected = min(info.chunk_length, info.data_length - first)
        position = self._offsets[index]
        end = self._offsets[index + 1] if index + 1 < info.chunks else self.size
        size = end - position - _CHECKSUM_SIZE
        if position < 0 or not 0 < size <= 2 * info.chunk_length + _OVERHEAD or end > self.size:
            raise self._info.error(f"chunk {index} of {size} bytes at {position}", self._offsets.position(index))
        data = self._file.read(size + _CHECKSUM_SIZE, position)
        stored, data = data[size:], data[:size]
        if zlib.crc32(data) != int.from_bytes(stored, "big"):
            raise self._lost("the checksum of a chunk does not match", position, first, first + expected)
        if size < info.max_compressed_length:
            try:
                data = self._decompress(data, expected)
            except FormatError as error:
                raise self._lost(f"a chunk: {error.reason}", position, first, first + expected) from None
        if len(data) != expected:
            found = f"a chunk of {len(data)} bytes in place of {expected}"
            raise self._lost(found, position, first, first + expected)
        return data


class _PlainFile(DataFile):
    """`checksums`: CRC.db; None if there is none."""

    def __init__(self, path: Path, checksums: Path | None) -> None:
        super().__init__(path)
        self.length = self.size
        self.has_checksums = checksums is not None
        self._chunk_length = _PLAIN_CHUNK
        self._crc: ComponentFile | None = None
        if checksums is None:
            return
        self._crc = ComponentFile(checksums)
        if self._crc.size < _CHECKSUM_SIZE:
            raise self._crc.error("ends before the length of a chunk", self._crc.size)
        self._chunk_length = int.from_bytes(self._crc.read(4, 0), "big", signed=True)
        if not 0 < self._chunk_length <= _LARGEST_CHUNK:
            raise self._crc.error(f"chunks of {self._chunk_length} bytes", 0)
        self._count = (self._crc.size - 4) // _CHECKSUM_SIZE
        self._sums = _Numbers(self._crc, "I", 4, self._count)

    def close(self) -> None:
        super().close()
        if self._crc is not None:
            self._crc.close()

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        length = self._chunk_length
        for first in range(start // length * length, self.length, length):
            data = self._file.read(min(length, self.length - first), first)
            self._check(data, first)
            yield data[start - first :] if start > first else data

    def _check(self, data: bytes, first: int) -> None:
        if self._crc is None:
            return
        index = first // self._chunk_length
        if index >= self._count:
            raise self._crc.error(f"no checksum of the data from {first} on", self._crc.size)
        if zlib.crc32(data) != self._sums[index]:
            raise self._lost("the checksum of a chunk does not match", first, first, first + self._chunk_length)


def open_data(folder: Path, descriptor: Descriptor) -> DataFile:
    """Data.db, compressed if there is a CompressionInfo.db. FormatError, UnsupportedError, OSError."""
    path = folder / descriptor.file_name(DATA)
    info_path = folder / descriptor.file_name(COMPRESSION_INFO)
    if info_path.exists():
        has_limit = descriptor.format.has_max_compressed_length
        return _CompressedFile(path, info_path, has_max_compressed_length=has_limit)
    checksums = folder / descriptor.file_name(CRC)
    return _PlainFile(path, checksums if checksums.exists() else None)
