"""The fold: (state, raw messages, now) -> (state, changes), a pure function without Spark, Kafka or RocksDB.

A chunk of one raw partition is decoded, put in write order and folded message by message into an Overlay over the
committed state: each message that changes what `SELECT` would show gives one RowChange for each row that it changes.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.byte_comparable import bound_keys, clustering_encoder
from cassandra_storage.merge import RowMerger
from cdc_messages.changes import RowChange, Source
from cdc_program.errors import CdcError, Code
from materializer.images import RowImager
from materializer.overlay import Overlay, StateReader
from materializer.partition_fold import Moment, PartitionFold, TableTools
from materializer.partition_state import PartitionState, RowCodec
from materializer.ranges import DeletedRange
from materializer.row_updates import RawRecord, RowUpdate, decode_records, row_updates
from materializer.state_keys import (
    EXPIRY,
    FACTS_SECTION,
    NOW,
    ROWS_SECTION,
    STATIC_SECTION,
    TABLE_ID,
    expiry_key,
    partition_prefix,
    split_data_key,
    split_expiry_key,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_storage.schema import ColumnMetadata, TableMetadata
    from materializer.catalog import TableCatalog

_NO_HOST = bytes(16)


class ChunkResult(NamedTuple):
    """What a chunk makes of the state (None deletes a key), what it emits, in order, and the partition's new time."""

    writes: dict[bytes, bytes | None]
    changes: list[RowChange]
    now_ms: int


def fold_chunk(reader: StateReader, records: Sequence[RawRecord], catalog: TableCatalog) -> ChunkResult:
    """Fold records of one raw partition (at least one), in the order of their offsets.

    CdcError with SCHEMA_UNKNOWN, RAW_MESSAGE, STATE_DAMAGED, STATE_FORMAT or NOT_SUPPORTED; nothing of the chunk
    may be used then.
    """
    overlay = Overlay(reader)
    now_ms = _advance_now(overlay, records)
    messages = decode_records(records)
    table_id = _same_table(overlay, {message.table_id for _, message in messages})
    fold = _ChunkFold(overlay, catalog, table_id, now_ms // 1000)
    updates = row_updates(messages, catalog)
    fold.expire()
    fold.prefetch(updates)
    for update in updates:
        fold.apply(update)
    return ChunkResult(overlay.writes, fold.changes, now_ms)


def _advance_now(overlay: Overlay, records: Sequence[RawRecord]) -> int:
    """`now` of the partition in ms: the largest of its last one and the brokers' timestamps; it never goes back."""
    stored = overlay.get(NOW)
    before = 0 if stored is None else int.from_bytes(stored, "big")
    now = max(before, *(record.timestamp_ms for record in records))
    if now != before:
        overlay.put(NOW, now.to_bytes(8, "big"))
    return now


def _same_table(overlay: Overlay, table_ids: set[bytes]) -> bytes:
    """The one table that this state is of; a table made anew under the same name has another id."""
    stored = overlay.get(TABLE_ID)
    known = table_ids if stored is None else table_ids | {stored}
    if len(known) != 1:
        raise CdcError(
            Code.NOT_SUPPORTED,
            f"The raw topic holds messages of tables with the ids {', '.join(sorted(one.hex() for one in known))}: the "
            "table was dropped and made again under its name.",
            "Delete its raw topic and its change topic before the table is made again.",
        )
    (table_id,) = known
    if stored is None:
        overlay.put(TABLE_ID, table_id)
    return table_id


class _ChunkFold:
    """The fold of one chunk; `now` in s is the same for all its messages."""

    def __init__(self, overlay: Overlay, catalog: TableCatalog, table_id: bytes, now: int) -> None:
        self.changes: list[RowChange] = []
        self._overlay = overlay
        self._now = now
        _, self._table = catalog.newest_of(table_id)
        self._tools = TableTools(
            overlay=overlay,
            codec=RowCodec(overlay, catalog, table_id),
            merger=RowMerger(_columns_by_name(self._table), is_counter=self._table.is_counter),
            imager=RowImager(self._table),
            clustering_key=clustering_encoder(self._table.clustering),
            has_clustering=bool(self._table.clustering),
        )
        self._partitions: dict[bytes, PartitionState] = {}

    def prefetch(self, updates: Sequence[RowUpdate]) -> None:
        """One ordered read for all that the updates will look at (fan-outs scan by themselves)."""
        keys = set()
        for update in updates:
            prefix = partition_prefix(update.partition_key)
            keys |= {prefix + FACTS_SECTION, prefix + STATIC_SECTION}
            if update.row is not None:
                keys.add(prefix + ROWS_SECTION + self._tools.clustering_key(update.row.clustering))
        self._overlay.prefetch(keys)

    def apply(self, update: RowUpdate) -> None:
        """Merge one message and emit what it changes."""
        fold = self._partition(update.partition_key, update.source, Moment(self._now, self._now))
        if update.row is not None:
            self.changes += fold.row(update.row)
        elif update.static is not None:
            self.changes += fold.static(update.static)
        elif update.range is not None:
            first, last = bound_keys(self._table.clustering, update.range.start, update.range.end)
            self.changes += fold.range(DeletedRange(first, last, update.range.deletion))
        else:
            self.changes += fold.partition(update.deletion)

    def expire(self) -> None:
        """Emit what has expired up to now, second by second, as if each had been met on time."""
        start, end = EXPIRY, expiry_key(self._now + 1, b"")
        while (entry := next(self._overlay.scan(start, end), None)) is not None:
            second, _ = split_expiry_key(entry[0])
            start = expiry_key(second + 1, b"")
            self._expire_second(second, [key for key, _ in self._overlay.scan(entry[0], start)])

    def _expire_second(self, second: int, due: Sequence[bytes]) -> None:
        """Emit what expires in one second, partition by partition, and take it from the queue."""
        by_partition: dict[bytes, list[bytes]] = {}
        for key in due:
            self._overlay.put(key, None)
            _, data_key = split_expiry_key(key)
            by_partition.setdefault(split_data_key(data_key)[0], []).append(data_key)
        source = Source(second * 1_000_000, _NO_HOST, "", 0, "expiry")
        for partition_key, data_keys in by_partition.items():
            self.changes += self._partition(partition_key, source, Moment(second - 1, second)).expiry(data_keys)

    def _partition(self, partition_key: bytes, source: Source, moment: Moment) -> PartitionFold:
        state = self._partitions.get(partition_key)
        if state is None:
            state = self._partitions[partition_key] = PartitionState(self._overlay, self._tools.codec, partition_key)
        return PartitionFold(self._tools, state, partition_key, source, moment)


def _columns_by_name(table: TableMetadata) -> dict[str, ColumnMetadata]:
    """All columns that a stored row may hold: those dropped since, too."""
    dropped = (dropped.column for dropped in table.dropped_columns.values())
    return {column.name: column for column in chain(dropped, table.static_columns, table.regular_columns)}
