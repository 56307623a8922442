"""A committed state in memory, for tests of the pure fold."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class MemoryState:
    """StateReader over a dict."""

    def __init__(self) -> None:
        self.data: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        return self.data.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.data.get(key) for key in keys]

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        for key in sorted(self.data):
            if start <= key < end:
                yield key, self.data[key]

    def scan_back(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        return reversed(list(self.scan(start, end)))

    def apply(self, writes: Mapping[bytes, bytes | None]) -> None:
        for key, value in writes.items():
            if value is None:
                self.data.pop(key, None)
            else:
                self.data[key] = value
