"""The keys that a chunk has written, for scans. A scan of one Cassandra partition does not look at the others."""

from __future__ import annotations

import bisect

from materializer.rows.keys import PARTITION

_MANY = 1000  # keys out of order: with more of them, the next search puts all in order
_LENGTH_END = len(PARTITION) + 4


class WrittenKeys:
    """`added` has each key once, in any order; writers append to it. A search sees what has been appended before it.

    Most searches are for keys of one partition (`p <partition> …`, materializer.rows.keys). Partitions are indexed at
    the first such search, and all keys are put in order at the first other one.
    """

    __slots__ = ("_all", "_indexed", "_ordered", "_partitions", "added")

    def __init__(self) -> None:
        self.added: list[bytes] = []
        self._indexed = 0  # so many of `added` are in _partitions, if they are a partition's
        self._partitions: dict[bytes, _Keys] = {}
        self._ordered = 0  # so many of `added` are in _all
        self._all = _Keys()

    def between(self, start: bytes, end: bytes) -> list[bytes]:
        """The keys from `start` on, and before `end`, in order."""
        prefix = _partition_of(start)
        if prefix is None or prefix != _partition_of(end):
            self._all.recent += self.added[self._ordered :]
            self._ordered = len(self.added)
            return self._all.between(start, end)
        for key in self.added[self._indexed :]:
            of_key = _partition_of(key)
            if of_key is not None:
                self._partitions.setdefault(of_key, _Keys()).recent.append(key)
        self._indexed = len(self.added)
        keys = self._partitions.get(prefix)
        return [] if keys is None else keys.between(start, end)


class _Keys:
    """Keys in order, and some that are not yet."""

    __slots__ = ("_in_order", "recent")

    def __init__(self) -> None:
        self._in_order: list[bytes] = []
        self.recent: list[bytes] = []

    def between(self, start: bytes, end: bytes) -> list[bytes]:
        if len(self.recent) > _MANY:
            self._in_order += self.recent
            self._in_order.sort()
            self.recent.clear()
        found = self._in_order[bisect.bisect_left(self._in_order, start) : bisect.bisect_left(self._in_order, end)]
        recent = [key for key in self.recent if start <= key < end]
        return sorted(found + recent) if recent else found


def _partition_of(key: bytes) -> bytes | None:
    """The beginning that all keys of its partition have in common; None if it is not the key of a partition."""
    if key[:1] != PARTITION:
        return None
    length = _LENGTH_END + int.from_bytes(key[1:_LENGTH_END], "big")
    return key[:length] if length <= len(key) else None
