"""The messages that an open repair of a Cassandra partition holds: images of its hosts, and writes that came since.

They are stored as they came, rows by their clustering, so that the replacement reads them beside the rows.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from cassandra_storage.deletion import LIVE
from cdc_program.errors import CdcError, Code
from materializer.fold.row_updates import decode_record, read_row_updates
from materializer.records import Arrival, RawRecord, UnreadableError
from materializer.rows.format_version import VERSION_BYTE, check_version
from materializer.rows.keys import (
    FACTS_SECTION,
    HELD,
    RANGES_SECTION,
    ROWS_END,
    ROWS_SECTION,
    STATIC_SECTION,
    repair_key,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from cassandra_storage.clustering import Clustering
    from cassandra_storage.deletion import DeletionTime, RangeTombstone
    from cassandra_storage.merge import RowMerger
    from cassandra_storage.rows import Row
    from materializer.fold.repairs import Repair
    from materializer.records import RowUpdate
    from materializer.rows.catalog import TableCatalog
    from materializer.rows.overlay import Overlay

_PLACE = struct.Struct(">16sQQQ")
_SIGN = 1 << 63


def held_prefix(partition_key: bytes, repair: UUID) -> bytes:
    """The beginning of the keys of all that a repair holds."""
    return repair_key(HELD, partition_key, repair.bytes)


def held_end(prefix: bytes) -> bytes:
    return prefix + ROWS_END


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
    """What a repair holds, without the writes that an image of their own host has. What is taken is deleted."""

    def __init__(self, overlay: Overlay, catalog: TableCatalog, merger: RowMerger, repair: Repair) -> None:
        self.repair = repair
        self._overlay = overlay
        self._catalog = catalog
        self._merger = merger
        self._prefix = held_prefix(repair.partition_key, repair.id)
        self._flushed_to = repair.flushed_to

    def take_deletion(self) -> DeletionTime:
        """The deletion of the partition; LIVE if there is none."""
        deletion = LIVE
        for update in self._take_all(FACTS_SECTION, RANGES_SECTION):
            if update.deletion.supersedes(deletion):
                deletion = update.deletion
        return deletion

    def take_static(self) -> Row | None:
        """The static row, without the partition's deletion applied."""
        merged: Row | None = None
        for update in self._take_all(STATIC_SECTION, ROWS_SECTION):
            assert update.static is not None
            merged = update.static if merged is None else self._merger.merge((merged, update.static))
        return merged

    def ranges(self) -> Iterator[tuple[bytes, RangeTombstone]]:
        """The range tombstones with their keys, which `delete` takes."""
        for key, value in self._scan(RANGES_SECTION, STATIC_SECTION):
            update = self._read(value)
            if update is None or update.range is None:
                self.delete(key)
            else:
                yield key, update.range

    def rows(self, first: bytes) -> HeldRows:
        """The rows from a clustering key on."""
        return HeldRows(self, self._scan(ROWS_SECTION + first, ROWS_END), len(self._prefix) + 1, self._merger)

    def delete(self, key: bytes) -> None:
        self._overlay.put(key, None)

    def read_row(self, value: bytes) -> Row | None:
        """The row in a held message; None if it is not needed."""
        update = self._read(value)
        return None if update is None else update.row

    def _take_all(self, section: bytes, end: bytes) -> Iterator[RowUpdate]:
        for key, value in self._scan(section, end):
            update = self._read(value)
            self.delete(key)
            if update is not None:
                yield update

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

    def __init__(
        self, held: HeldPartition, messages: Iterator[tuple[bytes, bytes]], start: int, merger: RowMerger
    ) -> None:
        self._held = held
        self._messages = messages
        self._start = start
        self._merger = merger
        self._next = next(messages, None)

    @property
    def clustering_key(self) -> bytes | None:
        return None if self._next is None else self._next[0][self._start : -_PLACE.size]

    def take(self) -> tuple[Row | None, int]:
        """The merged row of the next clustering, without any deletion but its own, and the bytes of its messages. None
        if none of its messages is needed.
        """
        clustering_key, merged, size = self.clustering_key, None, 0
        while self._next is not None and self.clustering_key == clustering_key:
            key, value = self._next
            row = self._held.read_row(value)
            if row is not None:
                merged = row if merged is None else self._merger.merge((merged, row))
            size += len(value)
            self._held.delete(key)
            self._next = next(self._messages, None)
        return merged, size


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
