"""Held writes: what has come waits in the state until what belongs before it has had `hold` to come too."""

from __future__ import annotations

import struct
from collections import defaultdict
from typing import TYPE_CHECKING

from materializer.fold.row_updates import decode_record, row_updates
from materializer.records import Order, RawRecord, RowUpdate
from materializer.rows.format_version import FORMAT_VERSION, check_version
from materializer.rows.keys import HELD, HELD_QUEUE, held_prefix, queue_key, split_queue_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from materializer.fold.clock import Clock
    from materializer.rows.budget import Budget
    from materializer.rows.catalog import TableCatalog
    from materializer.rows.overlay import Overlay

_ORDER = struct.Struct(">Q16sQQQ")
_VALUE = struct.Struct(">BQ")  # and the raw message
_SIGN = 1 << 63  # makes the order of unsigned numbers that of signed ones


def due_updates(
    overlay: Overlay, catalog: TableCatalog, clock: Clock, arrived: list[RowUpdate], budget: Budget
) -> list[tuple[int, RowUpdate]]:
    """What is to be folded now, in write order, each with its second; the rest of `arrived` is kept for later.

    A write that came at most at the chunk's clock is due, and with it all writes of its partition that belong before
    it. Its second is when it was first due: the time of its arrival or, where it is earlier, that of one that belongs
    after it. So what comes out is the same however the messages are batched.
    """
    limits: dict[bytes, Order] = {}
    for update in arrived:
        if update.arrival_ms <= clock.clock_ms:
            limits[update.partition_key] = max(update.order, limits.get(update.partition_key, update.order))
    pool = HeldWrites(overlay, catalog)
    pool.extend(limits, clock.clock_ms, budget)
    released = []
    for update in arrived:
        limit = limits.get(update.partition_key)
        if limit is not None and update.order <= limit:
            released.append(update)
        else:
            pool.put(update)
    if not pool.is_empty:
        for partition_key, limit in limits.items():
            for update in pool.take(partition_key, limit):
                released.append(update)
                budget.spend(len(update.raw), 0)
                if budget.is_spent or len(released) > len(arrived) + budget.rows:
                    budget.cut()
    released.sort(key=lambda update: update.order)
    return _with_seconds(released, clock)


def forget_held(overlay: Overlay, budget: Budget) -> None:
    """Hold nothing any more: the table that the writes are of is gone."""
    for first in (HELD, HELD_QUEUE):
        for key, _ in overlay.scan(first, first + b"\xff" * 9):
            budget.check()
            budget.spend(len(key))
            overlay.put(key, None)


class HeldWrites:
    """The held writes of the state."""

    def __init__(self, overlay: Overlay, catalog: TableCatalog) -> None:
        self._overlay = overlay
        self._catalog = catalog
        self._reached: dict[
            bytes, bytes
        ] = {}  # up to where a partition's are taken: they need not be passed over again
        self.is_empty = next(overlay.scan(HELD_QUEUE, queue_key(HELD_QUEUE, _SIGN, b"")), None) is None

    def extend(self, limits: dict[bytes, Order], clock_ms: int, budget: Budget) -> None:
        """Make `limits` the largest order that is due of each partition."""
        if self.is_empty:
            return
        for _, partition_key, order in self.due(0, clock_ms):
            if len(limits) > budget.rows:
                budget.cut()
            limits[partition_key] = max(order, limits.get(partition_key, order))

    def due(self, first_ms: int, last_ms: int) -> Iterator[tuple[int, bytes, Order]]:
        """The arrivals (ms), partition keys and orders of those that came between two times, in the order of arrival;
        what is taken while this is read does not come.
        """
        first, end = queue_key(HELD_QUEUE, first_ms, b""), queue_key(HELD_QUEUE, last_ms + 1, b"")
        for key, _ in self._overlay.scan(first, end):
            arrival_ms, held = split_queue_key(key)
            yield arrival_ms, *_split(held)

    def put(self, update: RowUpdate) -> None:
        """Hold a write; of duplicates the one that came first."""
        key = held_prefix(update.partition_key) + _pack(update.order)
        if self._overlay.get(key) is None:
            self._overlay.put(key, _VALUE.pack(FORMAT_VERSION, update.arrival_ms) + update.raw)
            self._overlay.put(queue_key(HELD_QUEUE, update.arrival_ms, key[1:]), b"")

    def take(self, partition_key: bytes, limit: Order) -> Iterator[RowUpdate]:
        """The held writes of a partition up to an order; what comes is held no longer."""
        first = held_prefix(partition_key)
        start, end = self._reached.get(partition_key, first), first + _pack(limit) + b"\x00"
        for key, value in self._overlay.scan(start, end) if start < end else ():
            self._reached[partition_key] = key + b"\x00"
            check_version(value)
            _, arrival_ms = _VALUE.unpack_from(value)
            self._overlay.put(key, None)
            self._overlay.put(queue_key(HELD_QUEUE, arrival_ms, key[1:]), None)
            record = RawRecord(partition_key, value[_VALUE.size :], -1, arrival_ms)
            yield from row_updates([(record, decode_record(record))], [arrival_ms], self._catalog)


def _with_seconds(released: Iterable[RowUpdate], clock: Clock) -> list[tuple[int, RowUpdate]]:
    earliest: defaultdict[bytes, int] = defaultdict(lambda: clock.clock_ms)
    timed = []
    for update in reversed(list(released)):
        moment = earliest[update.partition_key] = min(earliest[update.partition_key], update.arrival_ms)
        timed.append((max(moment, clock.start_ms) // 1000, update))
    timed.reverse()
    return timed


def _pack(order: Order) -> bytes:
    timestamp, host, segment, position, index = order
    return _ORDER.pack(timestamp + _SIGN, host, segment + _SIGN, position + _SIGN, index + _SIGN)


def _split(held: bytes) -> tuple[bytes, Order]:
    """The partition key and the order of a held write's key without the section."""
    end = 4 + int.from_bytes(held[:4], "big")
    timestamp, host, segment, position, index = _ORDER.unpack_from(held, end)
    return held[4:end], (timestamp - _SIGN, host, segment - _SIGN, position - _SIGN, index - _SIGN)
