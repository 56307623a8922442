"""The timers of a state: expiry timers and purge timers. An entry with such a time has one timer of each kind."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING

from materializer.rows.budget import BudgetSpentError
from materializer.rows.keys import EXPIRY, PURGE, split_data_key, split_timer_key, timer_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from materializer.rows.budget import Budget
    from materializer.rows.expiry import RowTimers
    from materializer.rows.overlay import Overlay


class Timers:
    """The timers as one chunk reads and changes them.

    A chunk either loads all expiry timers of its time (`load_expiring`, then `pop_expired`) or reads the stored ones
    second by second (`next_expiry_second`, `expiring_at`, `delete_expiry_timers`).
    """

    __slots__ = ("_expiring", "_loaded_until", "_overlay")

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._loaded_until = -1
        self._expiring: dict[bytes, list[tuple[int, bytes]]] = {}

    def load_expiring(self, first: int, last: int, budget: Budget) -> None:
        """Load the expiry timers of the seconds `first` to `last`; BudgetSpentError if they are too many.

        Start at the chunk's first second: earlier timers are done, and the scan need not skip their deleted keys.
        """
        self._loaded_until = last
        stored = self._overlay.scan(timer_key(EXPIRY, first, b""), timer_key(EXPIRY, last + 1, b""))
        for number, (key, _) in enumerate(stored):
            if number >= budget.rows:
                raise BudgetSpentError
            self._push(*split_timer_key(key))

    def shared(self) -> tuple[dict[bytes, list[tuple[int, bytes]]], int, Callable[[int, bytes], None]]:
        """Return the parts that the native core needs: the loaded expiry timers by partition key, the second up to
        which they are loaded, and the function that adds one.
        """
        return self._expiring, self._loaded_until, self._push

    def loaded_until(self, second: int) -> list[bytes]:
        """The data keys of all loaded timers up to a second."""
        return [key for expiring in self._expiring.values() for at, key in expiring if at <= second]

    def update_timers(self, key: bytes, before: RowTimers, after: RowTimers) -> None:
        """Replace the timers of the row or static row at `key`."""
        if before.expires != after.expires:
            self._replace(EXPIRY, key, before.expires, after.expires)
            if after.expires is not None and after.expires <= self._loaded_until:
                self._push(after.expires, key)
        self.update_purge_timer(key, before.dead_since, after.dead_since)

    def update_purge_timer(self, key: bytes, before: int | None, after: int | None) -> None:
        """Replace the purge timer of what is at `key`: it has been dead since the second `after`, not `before`."""
        if before != after:
            self._replace(PURGE, key, before, after)

    def pop_expired(self, partition_key: bytes, until: int) -> Iterator[tuple[int, list[bytes]]]:
        """Delete the loaded timers of a Cassandra partition up to the second `until`: (second, data keys), in order.

        A timer that is set while this is read comes too, if its second is in that time.
        """
        expiring = self._expiring.get(partition_key)
        while expiring and expiring[0][0] <= until:
            second = expiring[0][0]
            keys: list[bytes] = []
            while expiring and expiring[0][0] == second:
                key = heappop(expiring)[1]
                self._overlay.put(timer_key(EXPIRY, second, key), None)
                if not keys or keys[-1] != key:
                    keys.append(key)
            yield second, keys

    def expiring_at(self, second: int) -> Iterator[bytes]:
        """The data keys with a stored expiry timer at a second, in order, without timers deleted while this is read."""
        for key, _ in self._overlay.scan(timer_key(EXPIRY, second, b""), timer_key(EXPIRY, second + 1, b"")):
            yield split_timer_key(key)[1]

    def delete_expiry_timers(self, second: int, data_keys: Iterable[bytes]) -> None:
        for data_key in data_keys:
            self._overlay.put(timer_key(EXPIRY, second, data_key), None)

    def next_expiry_second(self, first: int, last: int) -> int | None:
        """The first second from `first` to `last` with a stored expiry timer."""
        found = next(self._overlay.scan(timer_key(EXPIRY, first, b""), timer_key(EXPIRY, last + 1, b"")), None)
        return None if found is None else split_timer_key(found[0])[0]

    def expiring_partitions(self) -> list[bytes]:
        """The keys of the Cassandra partitions with loaded expiry timers."""
        return [partition_key for partition_key, expiring in self._expiring.items() if expiring]

    def purgeable(self, before: int, count: int) -> list[tuple[bytes, bytes]]:
        """(timer key, data key) of what has been dead since a second before `before`: the oldest `count`."""
        scan = self._overlay.scan(PURGE, timer_key(PURGE, max(before, 0), b""))
        return [(key, split_timer_key(key)[1]) for key, _ in islice(scan, count)]

    def oldest_dead_second(self, before: int) -> int | None:
        """The second of the oldest purge timer, if it is before `before`."""
        first = next(self._overlay.scan(PURGE, timer_key(PURGE, max(before, 0), b"")), None)
        return None if first is None else split_timer_key(first[0])[0]

    def _push(self, second: int, key: bytes) -> None:
        heappush(self._expiring.setdefault(split_data_key(key)[0], []), (second, key))

    def _replace(self, kind: bytes, key: bytes, before: int | None, after: int | None) -> None:
        if before is not None:
            self._overlay.put(timer_key(kind, before, key), None)
        if after is not None:
            self._overlay.put(timer_key(kind, after, key), b"")
