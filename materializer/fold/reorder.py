"""The reorder buffer: a write waits in the state for `reorder_ms`, so that earlier writes can still arrive."""

from __future__ import annotations

import struct
from collections import defaultdict
from typing import TYPE_CHECKING

from materializer.fold.row_updates import decode_record, read_row_updates
from materializer.records import Arrival, Order, RawRecord, RowUpdate, UnreadableError
from materializer.rows.budget import BudgetSpentError
from materializer.rows.format_version import FORMAT_VERSION, check_version
from materializer.rows.keys import REORDER_TIMER, REORDER_TIMER_END, reorder_prefix, split_timer_key, timer_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from materializer.fold.arrivals import OnUnreadable
    from materializer.fold.clock import RunClock
    from materializer.rows.budget import Budget
    from materializer.rows.catalog import TableCatalog
    from materializer.rows.overlay import Overlay
    from stream_runtime.state.reader import StateReader

_ORDER = struct.Struct(">Q16sQQQ")
_VALUE = struct.Struct(">BQ")  # and the raw message
_SIGN = 1 << 63  # makes the order of unsigned numbers that of signed ones


def release_in_write_order(
    buffer: ReorderBuffer, clock: RunClock, arrived: list[RowUpdate], budget: Budget
) -> list[tuple[int, RowUpdate]]:
    """The updates to fold now, in write order, each with its second; the rest of `arrived` goes into the buffer.

    An update that arrived by the clock is released, with all updates of its Cassandra partition that belong
    before it. Its second is that of its arrival or, if that is earlier, the arrival of an update that belongs after it.
    So the result does not depend on how the messages are batched. A snapshot's are released at once, after all others,
    and have the clock's second.
    """
    limits: dict[bytes, Order] = {}
    for update in arrived:
        if update.arrival_ms <= clock.clock_ms and not update.is_snapshot:
            limits[update.partition_key] = max(update.order, limits.get(update.partition_key, update.order))
    buffer.raise_limits(limits, clock.clock_ms, budget)
    released = []
    for update in arrived:
        limit = limits.get(update.partition_key)
        if update.is_snapshot or (limit is not None and update.order <= limit):
            released.append(update)
        else:
            buffer.add(update)
    if not buffer.is_empty:
        for partition_key, limit in limits.items():
            for update in buffer.release(partition_key, limit):
                released.append(update)
                budget.spend(len(update.raw), 0)
                if budget.is_spent or len(released) > len(arrived) + budget.rows:
                    raise BudgetSpentError
    released.sort(key=lambda update: update.order)
    return _with_seconds(released, clock)


def has_buffered(state: Overlay | StateReader) -> bool:
    """Whether any write waits in the buffer of a state."""
    return next(iter(state.scan(REORDER_TIMER, timer_key(REORDER_TIMER, _SIGN, b""))), None) is not None


class ReorderBuffer:
    """The buffered writes of one raw partition, in its state."""

    def __init__(self, overlay: Overlay, catalog: TableCatalog, on_unreadable: OnUnreadable) -> None:
        self._overlay = overlay
        self._catalog = catalog
        self._on_unreadable = on_unreadable
        self._released: dict[bytes, bytes] = {}  # where the next scan of a Cassandra partition starts
        self.is_empty = not has_buffered(overlay)

    @property
    def last_arrival_ms(self) -> int | None:
        """When the last one of the writes arrived; None if the buffer is empty."""
        last = self._overlay.last(REORDER_TIMER, REORDER_TIMER_END)
        return None if last is None else split_timer_key(last[0])[0]

    def raise_limits(self, limits: dict[bytes, Order], clock_ms: int, budget: Budget) -> None:
        """Raise each Cassandra partition's limit to the largest order in the buffer that arrived by `clock_ms`."""
        if self.is_empty:
            return
        for _, partition_key, order in self.arrived_between(0, clock_ms):
            if len(limits) > budget.rows:
                raise BudgetSpentError
            limits[partition_key] = max(order, limits.get(partition_key, order))

    def arrived_between(self, first_ms: int, last_ms: int) -> Iterator[tuple[int, bytes, Order]]:
        """The arrival time (ms), partition key and order of the writes that arrived in this time, by arrival.

        Writes that are released while this is read are skipped.
        """
        first, end = timer_key(REORDER_TIMER, first_ms, b""), timer_key(REORDER_TIMER, last_ms + 1, b"")
        for key, _ in self._overlay.scan(first, end):
            arrival_ms, subject = split_timer_key(key)
            yield arrival_ms, *_split(subject)

    def add(self, update: RowUpdate) -> None:
        """Buffer a write; of duplicates the one that arrived first stays."""
        key = reorder_prefix(update.partition_key) + _pack(update.order)
        if self._overlay.get(key) is None:
            self._overlay.put(key, _VALUE.pack(FORMAT_VERSION, update.arrival_ms) + update.raw)
            self._overlay.put(timer_key(REORDER_TIMER, update.arrival_ms, key[1:]), b"")

    def release(self, partition_key: bytes, limit: Order) -> Iterator[RowUpdate]:
        """The buffered writes of a Cassandra partition up to an order, each deleted from the buffer as it comes.

        One that the schema since its arrival has made unreadable is dead-lettered, with the offset -1.
        """
        first = reorder_prefix(partition_key)
        start, end = self._released.get(partition_key, first), first + _pack(limit) + b"\x00"
        for key, value in self._overlay.scan(start, end) if start < end else ():
            self._released[partition_key] = key + b"\x00"
            check_version(value)
            _, arrival_ms = _VALUE.unpack_from(value)
            self._overlay.put(key, None)
            self._overlay.put(timer_key(REORDER_TIMER, arrival_ms, key[1:]), None)
            record = RawRecord(partition_key, value[_VALUE.size :], -1, arrival_ms)
            try:
                arrival = Arrival(record, decode_record(record), arrival_ms)
            except UnreadableError as error:
                self._on_unreadable(record, error)
            else:
                yield from read_row_updates([arrival], self._catalog, self._on_unreadable)


def _with_seconds(released: Iterable[RowUpdate], clock: RunClock) -> list[tuple[int, RowUpdate]]:
    earliest: defaultdict[bytes, int] = defaultdict(lambda: clock.clock_ms)
    timed = []
    for update in reversed(list(released)):
        if update.is_snapshot:
            timed.append((clock.second, update))
            continue
        time_ms = earliest[update.partition_key] = min(earliest[update.partition_key], update.arrival_ms)
        timed.append((max(time_ms, clock.start_ms) // 1000, update))
    timed.reverse()
    return timed


def _pack(order: Order) -> bytes:
    timestamp, host, segment, position, index = order
    return _ORDER.pack(timestamp + _SIGN, host, segment + _SIGN, position + _SIGN, index + _SIGN)


def _split(subject: bytes) -> tuple[bytes, Order]:
    """The partition key and the order in the key of a buffered write, without its first byte."""
    end = 4 + int.from_bytes(subject[:4], "big")
    timestamp, host, segment, position, index = _ORDER.unpack_from(subject, end)
    return subject[4:end], (timestamp - _SIGN, host, segment - _SIGN, position - _SIGN, index - _SIGN)
