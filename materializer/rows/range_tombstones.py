"""The stored range tombstones of one Cassandra partition. Each is read where it is needed: there may be many."""

from __future__ import annotations

import struct
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.rows.deletion import LIVE, DeletionTime
from materializer.rows.expiry import deletion_second
from materializer.rows.format_version import FORMAT_VERSION, check_version
from materializer.rows.keys import RANGES_SECTION, STATIC_SECTION
from materializer.rows.ranges import DeletedRange, add_range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from materializer.rows.overlay import Overlay
    from materializer.rows.timers import Timers

_RANGE = struct.Struct(">Bqq")


class _Stretch(NamedTuple):
    """All clusterings in [first, last) are under one deletion, or under none; `last` None is the partition's end."""

    first: bytes
    last: bytes | None
    deletion: DeletionTime


class PartitionRanges:
    """Disjoint pieces in clustering order. The partition's facts say whether there are any."""

    __slots__ = ("_end", "_overlay", "_start", "_stretch", "_timers")

    def __init__(self, overlay: Overlay, timers: Timers, prefix: bytes) -> None:
        self._overlay = overlay
        self._timers = timers
        self._start = prefix + RANGES_SECTION
        self._end = prefix + STATIC_SECTION
        self._stretch: _Stretch | None = None

    def __iter__(self) -> Iterator[DeletedRange]:
        return self.pieces(b"")

    @property
    def is_empty(self) -> bool:
        return next(iter(self), None) is None

    def pieces(self, first: bytes) -> Iterator[DeletedRange]:
        """The pieces that begin at a clustering key or after it; they may be dropped while this is read."""
        for key, value in self._overlay.scan(self._start + first, self._end):
            yield decode_range(key[len(self._start) :], value)

    def covering(self, clustering_key: bytes) -> DeletionTime:
        """The deletion of the piece that holds this clustering; LIVE if none does."""
        stretch = self._stretch
        if (
            stretch is None
            or clustering_key < stretch.first
            or (stretch.last is not None and clustering_key >= stretch.last)
        ):
            stretch = self._stretch = self._stretch_of(clustering_key)
        return stretch.deletion

    def add(self, new: DeletedRange, most: int) -> tuple[bytes, int]:
        """Add as much of a range tombstone, from its beginning on, as touches at most `most` pieces (at least two) and
        the next: where the rest begins, and how many it touched. Adding it in parts gives the same pieces as at once.
        """
        touched = list(islice(self._touching(new), most + 1))
        if len(touched) > most:
            new = new._replace(last=touched[-1].first)
        before, after = set(touched), set(add_range(touched, new))
        for piece in before - after:
            self.drop(piece)
        for piece in after - before:
            self._put(piece.first, encode_range(piece), None, piece)
        return new.last, len(touched)

    def at(self, key: bytes) -> DeletedRange | None:
        """The piece at a key of the state."""
        value = self._overlay.get(key)
        return None if value is None else decode_range(key[len(self._start) :], value)

    def drop(self, piece: DeletedRange) -> None:
        self._put(piece.first, None, piece, None)

    def _touching(self, new: DeletedRange) -> Iterator[DeletedRange]:
        """The pieces that a new one overlaps or adjoins: add_range alters no other."""
        before = self._overlay.last(self._start, self._start + new.first)
        if before is not None:
            piece = decode_range(before[0][len(self._start) :], before[1])
            if piece.last >= new.first:
                yield piece
        for piece in self.pieces(new.first):
            if piece.first > new.last:
                return
            yield piece

    def _stretch_of(self, clustering_key: bytes) -> _Stretch:
        at = self._start + clustering_key
        found = self._overlay.last(self._start, at + b"\x00")
        first = b""
        if found is not None:
            piece = decode_range(found[0][len(self._start) :], found[1])
            if clustering_key < piece.last:
                return _Stretch(*piece)
            first = piece.last
        after = next(self.pieces(clustering_key), None)
        return _Stretch(first, None if after is None else after.first, LIVE)

    def _put(self, first: bytes, value: bytes | None, before: DeletedRange | None, after: DeletedRange | None) -> None:
        key = self._start + first
        self._overlay.put(key, value)
        self._stretch = None
        seconds = (None if piece is None else deletion_second(piece.deletion) for piece in (before, after))
        self._timers.update_purge_timer(key, *seconds)


def encode_range(piece: DeletedRange) -> bytes:
    """The value of a range tombstone; its first clustering is in the key."""
    return _RANGE.pack(FORMAT_VERSION, *piece.deletion) + piece.last


def decode_range(first: bytes, value: bytes) -> DeletedRange:
    check_version(value)
    _, marked, local = _RANGE.unpack_from(value)
    return DeletedRange(first, value[_RANGE.size :], DeletionTime(marked, local))
