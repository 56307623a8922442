"""The messages that an open repair of a Cassandra partition holds: images of its hosts, and writes that came since.

They are stored as they came, rows by their clustering, so that the replacement reads them beside the rows. A busy row
may have millions of messages. Too many for one chunk are merged in parts, and the result so far takes the place of the
last message.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from cassandra_storage.formats.rows.deletion import LIVE
from cdc_common.errors.codes import CdcError, Code
from materializer.fold.row_updates import decode_record, read_row_updates
from materializer.records import Arrival, RawRecord, UnreadableError
from materializer.rows.format_version import VERSION_BYTE, check_version
from materializer.rows.keys import FACTS_SECTION, RANGES_SECTION, ROWS_END, ROWS_SECTION, STATIC_SECTION, held_prefix
from materializer.rows.overlay import StoredRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cassandra_storage.formats.rows.clustering import Clustering
    from cassandra_storage.formats.rows.deletion import DeletionTime, RangeTombstone
    from cassandra_storage.formats.rows.row import Row
    from materializer.fold.repairs import Repair
    from materializer.fold.tools import TableTools
    from materializer.records import RowUpdate
    from materializer.rows.catalog import TableCatalog
    from materializer.rows.overlay import Overlay

_PLACE = struct.Struct(">16sQQQ")
_SIGN = 1 << 63
_MERGED = b"\x01"  # before a row that is merged of several messages; a raw message begins with 0
_LEAST = 2  # messages that one part merges: with one there would be no end


def hold(overlay: Overlay, repair: Repair, update: RowUpdate, clustering_key: Callable[[Clustering], bytes]) -> None:
    """Store a message beside the rows; copies of it are one."""
    place = _pack(update)
    if update.row is not None:
        place = ROWS_SECTION + clustering_key(update.row.clustering) + place
    elif update.static is not None:
        place = STATIC_SECTION + place
    else:
        place = (FACTS_SECTION if update.range is None else RANGES_SECTION) + place
    overlay.put(held_prefix(repair.partition_key, repair.id) + place, VERSION_BYTE + update.raw)


class HeldPartition:
    """The writes that a repair holds, without those that an image of their own host has. A taken write is deleted, and
    spends the budget.
    """

    def __init__(self, tools: TableTools, catalog: TableCatalog, repair: Repair) -> None:
        self.repair = repair
        self._overlay = tools.overlay
        self._codec = tools.codec
        self._budget = tools.budget
        self._merger = tools.merger
        self._catalog = catalog
        self._prefix = held_prefix(repair.partition_key, repair.id)
        self._flushed_to = repair.flushed_to

    def take_deletion(self) -> DeletionTime | None:
        """The deletion of the partition; LIVE if there is none. None if the budget has ended before."""
        deletion, newest = LIVE, None
        for taken, (key, value) in enumerate(self._scan(FACTS_SECTION, RANGES_SECTION)):
            if self._must_stop(taken):
                if newest is not None:
                    self._overlay.put(*newest)
                return None
            update = self._read(value)
            self._delete(key, value)
            if update is not None and update.deletion.supersedes(deletion):
                deletion, newest = update.deletion, (key, value)
        return deletion

    def take_static(self) -> tuple[Row | None, bool]:
        """Take the static row, as `take_row` takes a regular row."""
        return self.take_row(self._scan(STATIC_SECTION, ROWS_SECTION), is_static=True)

    def ranges(self) -> Iterator[tuple[bytes, RangeTombstone | None]]:
        """The range tombstones with their keys, which `delete` takes; None for one that is not needed."""
        for key, value in self._scan(RANGES_SECTION, STATIC_SECTION):
            update = self._read(value)
            yield key, None if update is None else update.range
            self._budget.spend(len(value))

    def rows(self, first: bytes) -> HeldRows:
        """The rows from a clustering key on."""
        return HeldRows(self, self._scan(ROWS_SECTION + first, ROWS_END), len(self._prefix) + 1)

    def delete(self, key: bytes) -> None:
        self._overlay.put(key, None)

    def take_row(self, messages: Iterable[tuple[bytes, bytes]], *, is_static: bool) -> tuple[Row | None, bool]:
        """Merge messages of one row, without any deletion but its own; None if none of them is needed. False if the
        budget has ended before: the rest is still held.
        """
        merged: Row | None = None
        last = b""
        for taken, (key, value) in enumerate(messages):
            if self._must_stop(taken):
                if merged is not None:
                    stored = self._codec.encode(StoredRow(merged, 0), is_static=is_static)
                    self._overlay.put(last, VERSION_BYTE + _MERGED + stored)
                return None, False
            row = self._read_row(value, is_static=is_static)
            if row is not None:
                merged = row if merged is None else self._merger.merge((merged, row))
            self._delete(key, value)
            last = key
        return merged, True

    def _must_stop(self, taken: int) -> bool:
        return taken >= _LEAST and self._budget.is_spent

    def _delete(self, key: bytes, value: bytes) -> None:
        self._budget.spend(len(value))
        self.delete(key)

    def _read_row(self, value: bytes, *, is_static: bool) -> Row | None:
        """None if it is not needed."""
        check_version(value)
        if value[1:2] == _MERGED:
            return self._codec.decode(value[2:], is_static=is_static).row
        update = self._read(value)
        if update is None:
            return None
        return update.static if is_static else update.row

    def _scan(self, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self._overlay.scan(self._prefix + first, self._prefix + end)

    def _read(self, value: bytes) -> RowUpdate | None:
        """None for a write that its host's image has, and for one of dropped columns alone."""
        check_version(value)
        record = RawRecord(self.repair.partition_key, value[1:], -1, 0)
        update = next(
            iter(read_row_updates([Arrival(record, decode_record(record), 0)], self._catalog, _damaged)), None
        )
        if update is None or update.is_snapshot:
            return update
        _, host, segment, position, _ = update.order
        return None if (segment, position) <= self._flushed_to.get(host, (-1, 0)) else update


class HeldRows:
    """Held rows in clustering order; `clustering_key` is that of the next one, None after the last."""

    def __init__(self, held: HeldPartition, messages: Iterator[tuple[bytes, bytes]], start: int) -> None:
        self._held = held
        self._messages = messages
        self._start = start
        self._next = next(messages, None)

    @property
    def clustering_key(self) -> bytes | None:
        return None if self._next is None else self._next[0][self._start : -_PLACE.size]

    def take(self) -> tuple[Row | None, bool]:
        """The merged row of the next clustering; see HeldPartition.take_row."""
        return self._held.take_row(self._of_next(), is_static=False)

    def _of_next(self) -> Iterator[tuple[bytes, bytes]]:
        clustering_key = self.clustering_key
        while self._next is not None and self.clustering_key == clustering_key:
            message, self._next = self._next, next(self._messages, None)
            yield message


def _pack(update: RowUpdate) -> bytes:
    """Byte-comparable: the place of the write, of 40 bytes."""
    _, host, segment, position, index = update.order
    return _PLACE.pack(host, segment + _SIGN, position + _SIGN, index + _SIGN)


def _damaged(record: RawRecord, error: UnreadableError) -> None:
    """A message that was readable when it was held, under the same schema."""
    raise CdcError(
        Code.STATE_DAMAGED,
        f"A message of {len(record.value)} bytes that a repair holds can't be read: {error.reason}.",
        "Delete the local state of this raw partition: it is restored from the checkpoint location.",
    )
