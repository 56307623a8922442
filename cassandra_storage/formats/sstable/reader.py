"""The partitions of an SSTable, one row at a time (org.apache.cassandra.io.sstable: SSTableIdentityIterator,
SSTableSimpleIterator; db.DeletionTime.Serializer; db.rows.UnfilteredSerializer as it is for SSTables).

A partition is its key, its deletion, a static row (if the header has static columns), rows and range tombstone markers
in clustering order, and 0x01. A row has the same form as in a message, with two sizes before its body: the size of what
follows, and the size of the row before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives.vint import read_unsigned_vint
from cassandra_storage.formats.rows.deletion import LIVE, NO_DELETION_TIME, DeletionTime
from cassandra_storage.formats.rows.row import Row
from cassandra_storage.formats.rows.unfiltered import (
    END_OF_PARTITION,
    IS_MARKER,
    Marker,
    parse_marker_body,
    parse_marker_head,
    parse_row_body,
    parse_row_head,
)
from cassandra_storage.formats.versions import NO_DELETION_TIMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cassandra_storage.formats.rows.header import SerializationHeader
    from cassandra_storage.formats.rows.unfiltered import Unfiltered
    from cassandra_storage.formats.sstable.versions import SSTableFormat

_T = TypeVar("_T")

_LIVE_FLAG = 0x80  # DeletionTime.Serializer.IS_LIVE_DELETION
_INVALID_DELETION_TIME = 2**32 - 2  # Cell.INVALID_DELETION_TIME
_LARGEST_VALUE = 0xFFFF  # of a key or a clustering: FBUtilities.MAX_UNSIGNED_SHORT
_LARGEST_VINT = 9
_REFILL = 1 << 16
_ENDED = "the data ends inside a partition"


class Partition(NamedTuple):
    """A Cassandra partition before its rows."""

    # The offset of its key in the uncompressed data, in bytes.
    position: int
    # The serialized partition key.
    key: bytes
    # The deletion of the whole Cassandra partition.
    deletion: DeletionTime
    # The static row; None if there is none.
    static_row: Row | None


class SSTableReader:
    """Reads partitions from chunks of uncompressed data that follow each other; the first begins with a partition at
    `start`. It keeps at most a window, or one row where that is larger. `length`: of all the data.
    `position`: where the reader is in it, also after an error.

    Errors are FormatErrors whose position is that in the uncompressed data, and those of the chunks. After an error
    nothing more can be read.
    """

    def __init__(
        self, chunks: Iterator[bytes], length: int, header: SerializationHeader, form: SSTableFormat, *, start: int = 0
    ) -> None:
        self._chunks = chunks
        self._length = length
        self._header = header
        self._read_deletion = _read_deletion if form.has_uint_deletion_time else _read_legacy_deletion
        self._has_static = bool(header.static_columns.layouts)
        # More than what comes before a row's body, and than a whole marker.
        self._largest_head = 64 + (len(header.clustering_lengths) + 1) * (_LARGEST_VALUE + _LARGEST_VINT)
        self._buf = b""
        self._pos = 0
        self._base = start
        self._is_inside = False

    @property
    def position(self) -> int:
        return self._base + self._pos

    def partitions(self) -> Iterator[Partition]:
        """Yield each partition. What `rows` has not returned of it is skipped."""
        while True:
            for _ in self.rows():
                pass
            self._fill(self._largest_head)
            if self._pos == len(self._buf):
                if self.position != self._length:
                    raise FormatError(f"data of {self._length} bytes ends early", position=self.position)
                return
            yield self._guarded(self._partition)

    def rows(self) -> Iterator[Unfiltered]:
        """The rows and markers of the partition that came last, as they lie in the file. Cells of dropped columns are
        left out, and rows that have nothing else.
        """
        while self._is_inside:
            if len(self._buf) - self._pos < self._largest_head:
                self._fill(self._largest_head)
            unfiltered = self._guarded(self._unfiltered)
            if unfiltered is not None:
                yield unfiltered

    def _guarded(self, read: Callable[[], _T]) -> _T:
        """Return the result of `read`. An error of bytes of the window gets its position in the data."""
        try:
            return read()
        except IndexError:
            raise FormatError(_ENDED, position=self.position) from None
        except FormatError as error:
            if error.segment is not None:  # of a chunk
                raise
            position = self._base + (self._pos if error.position is None else error.position)
            raise type(error)(error.reason, position=position) from None

    def _partition(self) -> Partition:
        position, buf, pos = self.position, self._buf, self._pos
        key_start = pos + 2
        key_end = key_start + (buf[pos] << 8 | buf[pos + 1])
        deletion, self._pos = self._read_deletion(buf, key_end)
        static_row = None
        if self._has_static:
            self._fill(self._largest_head)
            static_row = self._row(is_static=True)
        self._is_inside = True
        return Partition(position, buf[key_start:key_end], deletion, static_row)

    def _unfiltered(self) -> Unfiltered | None:
        """The next row or marker; None for an empty row and at the partition's end, which ends it."""
        flags = self._buf[self._pos]
        if flags & END_OF_PARTITION:
            self._pos += 1
            self._is_inside = False
            return None
        if flags & IS_MARKER:
            return self._marker()
        return self._row(is_static=False)

    def _row(self, *, is_static: bool) -> Row | None:
        """A row; None if nothing is said of it."""
        head, pos = parse_row_head(self._buf, self._pos, self._header, is_static=is_static)
        size, pos = read_unsigned_vint(self._buf, pos)
        if self._base + pos + size > self._length:
            raise FormatError(f"a row of {size} bytes reaches past the end of the data", position=pos)
        if pos + size > len(self._buf):
            before = self._pos
            self._fill(pos - before + size)
            pos += self._pos - before
        end = pos + size
        _, pos = read_unsigned_vint(self._buf, pos)  # the size of the row before
        row, found = parse_row_body(self._buf, pos, self._header, head, is_static=is_static)
        if found != end:
            raise FormatError(f"a row of {size} bytes that takes {found - end + size}", position=pos)
        self._pos = end
        return None if row.is_empty else row

    def _marker(self) -> Marker:
        """The size is not compared: 5.0 gets that of times more than 2^31 s after the least one wrong."""
        kind, values, pos = parse_marker_head(self._buf, self._pos, self._header)
        _, pos = read_unsigned_vint(self._buf, pos)
        _, pos = read_unsigned_vint(self._buf, pos)
        marker, self._pos = parse_marker_body(self._buf, pos, self._header, kind, values)
        return marker

    def _fill(self, size: int) -> None:
        """Have at least `size` bytes from the position on, or all that are left."""
        parts = [self._buf[self._pos :]]
        missing = size - len(parts[0])
        if missing <= 0:
            return
        missing = max(missing, size, _REFILL)  # so that each byte is copied but once or twice
        for chunk in self._chunks:
            parts.append(chunk)
            missing -= len(chunk)
            if missing <= 0:
                break
        self._base += self._pos
        self._pos = 0
        self._buf = b"".join(parts)


def _read_deletion(buf: bytes, pos: int) -> tuple[DeletionTime, int]:
    """DeletionTime.Serializer: 0x80, or the timestamp, whose first bit is 0, and unsigned seconds.

    Cassandra itself cannot read what it writes of a deletion at a negative timestamp.
    """
    flags = buf[pos]
    if flags & _LIVE_FLAG:
        if flags != _LIVE_FLAG:
            raise FormatError(f"a partition deletion with the flags {flags:#04x}", position=pos)
        return LIVE, pos + 1
    end = pos + 12
    buf[end - 1]  # IndexError at the end of the data
    seconds = int.from_bytes(buf[pos + 8 : end], "big")
    return DeletionTime(int.from_bytes(buf[pos : pos + 8], "big"), _deletion_time(seconds)), end


def _read_legacy_deletion(buf: bytes, pos: int) -> tuple[DeletionTime, int]:
    """DeletionTime.LegacySerializer: signed seconds, then the timestamp."""
    end = pos + 12
    buf[end - 1]
    seconds = int.from_bytes(buf[pos : pos + 4], "big", signed=True)
    timestamp = int.from_bytes(buf[pos + 4 : end], "big", signed=True)
    return DeletionTime(timestamp, _INVALID_DELETION_TIME if seconds < 0 else _deletion_time(seconds)), end


def _deletion_time(seconds: int) -> int:
    return NO_DELETION_TIME if seconds in NO_DELETION_TIMES else seconds
