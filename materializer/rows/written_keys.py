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

    __slots__ = ("_in_order", "_indexed", "_ordered", "_partitions", "added")

    def __init__(self) -> None:
        self.added: list[bytes] = []
        self._in_order: list[bytes] = []
        self._ordered = 0  # so many of `added` are in _in_order
        self._partitions: dict[bytes, list[bytes]] = {}
        self._indexed = 0  # so many of `added` are in _partitions, if they are a partition's

    def between(self, start: bytes, end: bytes) -> list[bytes]:
        """The keys from `start` on, and before `end`, in order."""
        prefix = _partition_of(start)
        if prefix == _partition_of(end) and prefix[:1] == PARTITION:
            keys = self._of_partition(prefix)
            if len(keys) <= _MANY:
                return sorted([key for key in keys if start <= key < end])
        return self._search(start, end)

    def _of_partition(self, prefix: bytes) -> list[bytes]:
        partitions = self._partitions
        for key in self.added[self._indexed :]:
            of_key = _partition_of(key)
            if of_key in partitions:
                partitions[of_key].append(key)
            else:
                partitions[of_key] = [key]
        self._indexed = len(self.added)
        return partitions.get(prefix, [])

    def _search(self, start: bytes, end: bytes) -> list[bytes]:
        if len(self.added) - self._ordered > _MANY:
            self._in_order += self.added[self._ordered :]
            self._in_order.sort()
            self._ordered = len(self.added)
        found = self._in_order[bisect.bisect_left(self._in_order, start) : bisect.bisect_left(self._in_order, end)]
        recent = [key for key in self.added[self._ordered :] if start <= key < end]
        return sorted(found + recent) if recent else found


def _partition_of(key: bytes) -> bytes:
    """The beginning that all keys of a partition have in common. Of a key that is no partition's, anything else."""
    return key[: _LENGTH_END + int.from_bytes(key[1:_LENGTH_END], "big")] if key[:1] == PARTITION else b""
