"""The queues of what expires and of what may be purged: for everything that has such a time one entry in each."""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING

from materializer.rows.keys import EXPIRY, PURGE, queue_key, split_data_key, split_queue_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from materializer.rows.budget import Budget
    from materializer.rows.expiry import RowTimes
    from materializer.rows.overlay import Overlay


class Queues:
    """The queues as a chunk whose clock goes from the second `start` to `end` reads and changes them; what expires by
    then is in memory.
    """

    __slots__ = ("_due", "_end", "_overlay")

    def __init__(self, overlay: Overlay, start: int, end: int, budget: Budget | None = None) -> None:
        self._overlay = overlay
        self._end = end
        self._due: defaultdict[bytes, list[tuple[int, bytes]]] = defaultdict(list)
        # What expired before `start` has been dealt with: the scan need not pass over what is deleted there.
        for number, (key, _) in enumerate(overlay.scan(queue_key(EXPIRY, start, b""), queue_key(EXPIRY, end + 1, b""))):
            if budget is not None and number >= budget.rows:
                budget.cut()
            self._push(*split_queue_key(key))

    def move(self, key: bytes, before: RowTimes, after: RowTimes) -> None:
        """The row or static row at `key` had and has these times."""
        if before.expires != after.expires:
            self._replace(EXPIRY, key, before.expires, after.expires)
            if after.expires is not None and after.expires <= self._end:
                self._push(after.expires, key)
        self.move_purge(key, before.dead_since, after.dead_since)

    def move_purge(self, key: bytes, before: int | None, after: int | None) -> None:
        """What is at `key` has been dead since `after`; the queue knows it as since `before`."""
        if before != after:
            self._replace(PURGE, key, before, after)

    def expiring(self, partition_key: bytes, until: int) -> Iterator[tuple[int, list[bytes]]]:
        """Take what expires in a partition up to the second `until` from the queue: (second, data keys), in order.

        What is queued while this is read, for a second within it, comes too.
        """
        due = self._due.get(partition_key)
        while due and due[0][0] <= until:
            second = due[0][0]
            keys: list[bytes] = []
            while due and due[0][0] == second:
                key = heappop(due)[1]
                self._overlay.put(queue_key(EXPIRY, second, key), None)
                if not keys or keys[-1] != key:
                    keys.append(key)
            yield second, keys

    def expiring_at(self, second: int) -> Iterator[bytes]:
        """What expires at a second, in the stored queue: data keys, in order; what goes meanwhile does not come."""
        for key, _ in self._overlay.scan(queue_key(EXPIRY, second, b""), queue_key(EXPIRY, second + 1, b"")):
            yield split_queue_key(key)[1]

    def take(self, second: int, data_keys: Iterable[bytes]) -> None:
        """Take what expires at a second from the stored queue."""
        for data_key in data_keys:
            self._overlay.put(queue_key(EXPIRY, second, data_key), None)

    def next_expiry(self, first: int, last: int) -> int | None:
        """The first second between these two at which something in the stored queue expires."""
        found = next(self._overlay.scan(queue_key(EXPIRY, first, b""), queue_key(EXPIRY, last + 1, b"")), None)
        return None if found is None else split_queue_key(found[0])[0]

    def expiring_partitions(self) -> list[bytes]:
        """The partitions in which something expires up to the end of the chunk."""
        return [partition_key for partition_key, due in self._due.items() if due]

    def purgeable(self, before: int, count: int) -> list[tuple[bytes, bytes]]:
        """(key of the entry, data key) of what has been dead since a second before `before`, the oldest first."""
        scan = self._overlay.scan(PURGE, queue_key(PURGE, max(before, 0), b""))
        return [(key, split_queue_key(key)[1]) for key, _ in islice(scan, count)]

    def dead_before(self, before: int) -> int | None:
        """Since when the oldest of what is dead since a second before `before` has been so; None if nothing is."""
        first = next(self._overlay.scan(PURGE, queue_key(PURGE, max(before, 0), b"")), None)
        return None if first is None else split_queue_key(first[0])[0]

    def _push(self, second: int, key: bytes) -> None:
        heappush(self._due[split_data_key(key)[0]], (second, key))

    def _replace(self, queue: bytes, key: bytes, before: int | None, after: int | None) -> None:
        if before is not None:
            self._overlay.put(queue_key(queue, before, key), None)
        if after is not None:
            self._overlay.put(queue_key(queue, after, key), b"")
