"""A state that is filled with entries that no fold has made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from materializer.store.changelog import Changelog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from materializer.store.changelog import Head
    from materializer.store.rocksdb import State

_BATCH_BYTES = 8 * 1024 * 1024


class Fill:
    """A new state, and what is put into it, so much at a time; `begin` first."""

    def __init__(self, state: State, head: Head, begin: Mapping[bytes, bytes]) -> None:
        self._state = state
        self._head = head
        self._writes: dict[bytes, bytes | None] = dict(begin)
        self._size = self._entries = 0

    def put(self, key: bytes, value: bytes | None) -> None:
        """None deletes."""
        self._writes[key] = value
        self._size += len(key) + len(value or b"")
        self._entries += 1
        if self._size >= _BATCH_BYTES:
            self._flush()

    def finish(self) -> tuple[int, State]:
        """How many entries were put into the state that it is now."""
        self._flush()
        return self._entries, self._state

    def _flush(self) -> None:
        self._state.apply(Changelog(self._head, self._state.version, self._head.offset, self._writes))
        self._writes, self._size = {}, 0
