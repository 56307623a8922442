"""A state as a chunk sees it: what is stored, and over it what the chunk has written so far."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class StateReader(Protocol):
    """The committed state of one raw partition."""

    def get(self, key: bytes) -> bytes | None: ...

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]: ...

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Pairs with start <= key < end, in the order of their keys."""
        ...

    def scan_back(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The same pairs from the last one on."""
        ...


class Overlay:
    """Reads through to `reader`, keeps writes in `writes` (None deletes): the content of the chunk's changelog."""

    __slots__ = ("_fetched", "_in_order", "_reader", "writes")

    def __init__(self, reader: StateReader) -> None:
        self._reader = reader
        self._fetched: dict[bytes, bytes | None] = {}
        self._in_order: list[bytes] | None = None  # the keys of `writes`, once there was a scan
        self.writes: dict[bytes, bytes | None] = {}

    def prefetch(self, keys: set[bytes]) -> None:
        """Read many keys at once, in their order, which RocksDB likes best."""
        wanted = sorted(keys)
        self._fetched.update(zip(wanted, self._reader.get_many(wanted), strict=True))

    def get(self, key: bytes) -> bytes | None:
        if key in self.writes:
            return self.writes[key]
        if key not in self._fetched:
            self._fetched[key] = self._reader.get(key)
        return self._fetched[key]

    def put(self, key: bytes, value: bytes | None) -> None:
        if self._in_order is not None and key not in self.writes:
            bisect.insort(self._in_order, key)
        self.writes[key] = value

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """As StateReader.scan, with this chunk's writes; they may go on while the scan is read."""
        written = self._written_between(start, end)
        position = 0
        for key, value in self._reader.scan(start, end):
            while position < len(written) and written[position] < key:
                yield from self._written(written[position])
                position += 1
            if position < len(written) and written[position] == key:
                position += 1
            if key in self.writes:
                yield from self._written(key)
            else:
                yield key, value
        for key in written[position:]:
            yield from self._written(key)

    def last(self, start: bytes, end: bytes) -> tuple[bytes, bytes] | None:
        """The last of the pairs of `scan`."""
        stored = next((pair for pair in self._reader.scan_back(start, end) if pair[0] not in self.writes), None)
        for key in reversed(self._written_between(start, end)):
            value = self.writes[key]
            if value is not None:
                return stored if stored is not None and stored[0] > key else (key, value)
        return stored

    def _written_between(self, start: bytes, end: bytes) -> list[bytes]:
        if self._in_order is None:
            self._in_order = sorted(self.writes)
        return self._in_order[bisect.bisect_left(self._in_order, start) : bisect.bisect_left(self._in_order, end)]

    def _written(self, key: bytes) -> Iterator[tuple[bytes, bytes]]:
        value = self.writes[key]
        if value is not None:
            yield key, value
