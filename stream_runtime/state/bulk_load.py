"""Bulk-loading a local store with entries that no fold has written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_runtime.state.changelog import Changelog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream_runtime.state.changelog import Head
    from stream_runtime.state.rocksdb import LocalStore

_BATCH_BYTES = 8 * 1024 * 1024


class BulkLoad:
    """Loads entries into a new local store in batches, `initial` first."""

    def __init__(self, local: LocalStore, head: Head, initial: Mapping[bytes, bytes]) -> None:
        self._local = local
        self._head = head
        self._writes: dict[bytes, bytes | None] = dict(initial)
        self._size = self._entries = 0

    def add(self, key: bytes, value: bytes | None) -> None:
        """Add an entry; None deletes the key."""
        self._writes[key] = value
        self._size += len(key) + len(value or b"")
        self._entries += 1
        if self._size >= _BATCH_BYTES:
            self._flush()

    def add_all(self, writes: Mapping[bytes, bytes | None]) -> None:
        """Add the entries as a batch."""
        self._flush()
        self._writes = dict(writes)
        self._entries += len(writes)

    def finish(self) -> tuple[int, LocalStore]:
        """How many entries were added, and the loaded store."""
        self._flush()
        return self._entries, self._local

    def _flush(self) -> None:
        self._local.apply(Changelog(self._head, self._local.version, self._head.offset, self._writes))
        self._writes, self._size = {}, 0
