"""A state in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class MemoryState:
    """stream_runtime.state.reader.StateReader."""

    def __init__(self) -> None:
        self._pairs: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        return self._pairs.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        return iter(sorted(pair for pair in self._pairs.items() if start <= pair[0] < end))

    def scan_back(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        return reversed(list(self.scan(start, end)))

    def apply(self, writes: Mapping[bytes, bytes | None]) -> None:
        for key, value in writes.items():
            if value is None:
                self._pairs.pop(key, None)
            else:
                self._pairs[key] = value
