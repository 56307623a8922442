"""The raw messages of a snapshot (decision 0032). Pure: no I/O.

A host sends a step `running`, then units of row images, then a step `ended` or `given_up`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from cassandra_storage.formats.primitives.vint import write_sized
from cassandra_storage.formats.rows.clustering_prefix import write_bound
from cassandra_storage.formats.rows.deletion import (
    NO_DELETION_TIME,
    NO_TIMESTAMP,
    DeletionTime,
    RangeTombstone,
)
from cassandra_storage.formats.rows.dropped_columns import columns_of_rows
from cassandra_storage.formats.rows.header import (
    NO_COLUMNS,
    NO_STATS,
    Columns,
    EncodingStats,
    SerializationHeader,
    table_codec,
    write_deletion_time,
    write_stats,
)
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.rows.unfiltered import write_row
from cassandra_storage.formats.versions import VERSION_50, messaging_format
from cdc_common.messages import raw, repairs
from cdc_common.messages.raw import RawMessage
from cdc_common.messages.repairs import encode_step as encode_repair_step
from cdc_common.messages.snapshots import (
    HostState,
    SnapshotStep,
    encode_step,
    file_name,
)
from publisher.mutations.messages import OutgoingMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cdc_common.messages.raw import RepairKind, SnapshotKind
    from cdc_common.messages.repairs import RepairStep
    from publisher.tables.published_table import PublishedTable

MESSAGING_VERSION = VERSION_50  # holds the local deletion times of all versions
_HAS_PARTITION_DELETION, _HAS_STATIC_ROW, _HAS_ROW_ESTIMATE = 0x04, 0x08, 0x10
_CACHED_COLUMNS = 4096
_NO_ROWS, _ONE_ROW = b"\x00", b"\x01"
_MARKER, _END_OF_PARTITION = b"\x02", b"\x01"


class SnapshotOrigin(NamedTuple):
    """One host's sending of a snapshot."""

    # The snapshot's id.
    snapshot: UUID
    # The host's id (16 bytes).
    host_id: bytes
    # when it began or resumed (µs): no two sendings have one place
    started: int
    # when the host had last truncated the table, before the files were taken (ms); 0 if never
    truncated_at: int = 0
    # The messages replace Cassandra partitions.
    is_repair: bool = False

    @property
    def file(self) -> str:
        """Return RawMessage.file."""
        return repairs.file_name(self.snapshot) if self.is_repair else file_name(self.snapshot)


def make_step(
    table: PublishedTable, origin: SnapshotOrigin, hosts: Sequence[bytes], state: HostState
) -> OutgoingMessage:
    """The message, for every raw partition, that a host begins (`running`) or ends its part. hosts: the ids of all."""
    kind: SnapshotKind = "snapshot_begin" if state == "running" else "snapshot_end"
    update = encode_step(SnapshotStep(origin.snapshot, tuple(hosts), state))
    return OutgoingMessage(table, b"", _message(table, origin, kind, update, (0, 0)))


def make_repair_steps(
    table: PublishedTable, origin: SnapshotOrigin, steps: Iterable[tuple[bytes, RepairStep]]
) -> list[OutgoingMessage]:
    """The messages that a host begins or ends its part of a repair, by the keys of the Cassandra partitions."""
    messages = []
    for key, step in steps:
        kind: RepairKind = "reset" if step.state == "running" else "reset_end"
        message = _message(table, origin, kind, encode_repair_step(step), (0, 0))
        messages.append(OutgoingMessage(table, key, replace(message, clock=origin.started)))
    return messages


class RowImages:
    """Makes one host's row images of one table. `units`: how many are made so far."""

    def __init__(self, table: PublishedTable, origin: SnapshotOrigin) -> None:
        self.units = 0
        self._table = table
        self._origin = origin
        self._codec = table_codec(table.table)
        self._layouts = [*map(self._codec.layout, columns_of_rows(table.table))]
        self._known: dict[tuple[str, ...], Columns] = {}

    def partition(
        self, partition_key: bytes, deletion: DeletionTime, static: Row | None, elements: Iterable[Row | RangeTombstone]
    ) -> Iterator[list[OutgoingMessage]]:
        """The units of a Cassandra partition, or of a part of it, in order: send each as a whole.

        The first one has the deletion, the static row and the first element, if that is a row. FormatError for a row
        with a column that the table does not have.
        """
        first: list[tuple[SnapshotKind, bytes]] = []
        if not deletion.is_live:
            first.append(("snapshot_partition_deletion", self._deletion(partition_key, deletion)))
        if static is not None and not static.is_empty:
            first.append(("snapshot_static", self._row(partition_key, static, is_static=True)))
        for element in elements:
            if isinstance(element, RangeTombstone):
                if first:
                    yield self._unit(partition_key, first)
                first = [("snapshot_range_deletion", self._range(partition_key, element))]
            else:
                first.append(("snapshot_row", self._row(partition_key, element, is_static=False)))
            yield self._unit(partition_key, first)
            first = []
        if first:
            yield self._unit(partition_key, first)

    def _unit(self, partition_key: bytes, parts: Sequence[tuple[SnapshotKind, bytes]]) -> list[OutgoingMessage]:
        self.units += 1
        return [
            OutgoingMessage(
                self._table,
                partition_key,
                _message(self._table, self._origin, kind, update, (self.units - 1, index)),
            )
            for index, (kind, update) in enumerate(parts)
        ]

    def _deletion(self, key: bytes, deletion: DeletionTime) -> bytes:
        stats = _stats([deletion.marked_for_delete_at], [deletion.local_deletion_time], [])
        body = write_deletion_time(deletion, self._header(stats)) + _NO_ROWS
        return self._update(key, _HAS_PARTITION_DELETION, stats, NO_COLUMNS.raw, body)

    def _range(self, key: bytes, tombstone: RangeTombstone) -> bytes:
        deletion = tombstone.deletion
        stats = _stats([deletion.marked_for_delete_at], [deletion.local_deletion_time], [])
        written = write_deletion_time(deletion, self._header(stats))
        bounds = (write_bound(bound, self._codec.clustering_lengths) for bound in (tombstone.start, tombstone.end))
        body = _NO_ROWS + b"".join(_MARKER + bound + written for bound in bounds)
        return self._update(key, 0, stats, NO_COLUMNS.raw, body)

    def _row(self, key: bytes, row: Row, *, is_static: bool) -> bytes:
        """Return the update of one row, with the row's own columns alone (decision 0006)."""
        columns, stats = self._columns_of(row), _stats_of(row)
        if is_static:
            body = write_row(row, self._header(stats, statics=columns), is_static=True) + _NO_ROWS
            return self._update(key, _HAS_STATIC_ROW, stats, columns.raw + NO_COLUMNS.raw, body)
        body = _ONE_ROW + write_row(row, self._header(stats, regulars=columns))
        return self._update(key, 0, stats, columns.raw, body)

    def _columns_of(self, row: Row) -> Columns:
        names = tuple(row.columns)
        columns = self._known.get(names)
        if columns is None:
            columns = Columns(tuple(layout for layout in self._layouts if layout.name in row.columns))
            if len(self._known) >= _CACHED_COLUMNS:
                self._known.clear()
            self._known[names] = columns
        return columns

    def _header(
        self, stats: EncodingStats, *, statics: Columns = NO_COLUMNS, regulars: Columns = NO_COLUMNS
    ) -> SerializationHeader:
        form = messaging_format(MESSAGING_VERSION)
        return SerializationHeader(self._codec.clustering_lengths, statics, regulars, stats, form)

    def _update(self, key: bytes, flags: int, stats: EncodingStats, columns: bytes, body: bytes) -> bytes:
        """PartitionUpdate.PartitionUpdateSerializer.serialize."""
        start = self._table.id + write_sized(key) + bytes([flags | _HAS_ROW_ESTIMATE])
        return start + write_stats(stats) + columns + body + _END_OF_PARTITION


def message_parts(table: PublishedTable, origin: SnapshotOrigin, schema_id: int) -> tuple[bytes, bytes, bytes]:
    """The bytes of each encoded row image up to its kind, those between `update` and `segment`, and those of `segment`
    and `file` (cdc_common.messages.raw).
    """
    message = _message(table, origin, "snapshot_row", b"", (0, 0))
    return *raw.table_parts(message, schema_id), raw.segment_part(message.segment, message.file)


def _message(
    table: PublishedTable,
    origin: SnapshotOrigin,
    kind: SnapshotKind | RepairKind,
    update: bytes,
    place: tuple[int, int],
) -> RawMessage:
    return RawMessage(
        kind=kind,
        update=update,
        messaging_version=MESSAGING_VERSION,
        table_id=table.id,
        schema_digest=table.digest,
        truncation_epoch=origin.truncated_at,
        host_id=origin.host_id,
        segment=origin.started,
        file=origin.file,
        position=place[0],
        index=place[1],
    )


def _stats_of(row: Row) -> EncodingStats:
    """EncodingStats.Collector: the smallest of each, so that the row's own are small numbers."""
    timestamps = [row.liveness.timestamp, row.deletion.time.marked_for_delete_at]
    times = [row.liveness.local_expiration_time, row.deletion.time.local_deletion_time]
    ttls = [row.liveness.ttl]
    for data in row.columns.values():
        if isinstance(data, Cell):
            cells: tuple[Cell, ...] = (data,)
        else:
            cells = data.cells
            timestamps.append(data.deletion.marked_for_delete_at)
            times.append(data.deletion.local_deletion_time)
        timestamps += [cell.timestamp for cell in cells]
        times += [cell.local_deletion_time for cell in cells]
        ttls += [cell.ttl for cell in cells]
    return _stats(timestamps, times, ttls)


def _stats(timestamps: list[int], times: list[int], ttls: list[int]) -> EncodingStats:
    return EncodingStats(
        min((timestamp for timestamp in timestamps if timestamp != NO_TIMESTAMP), default=NO_STATS.min_timestamp),
        min((time_ for time_ in times if time_ != NO_DELETION_TIME), default=NO_STATS.min_local_deletion_time),
        min((ttl for ttl in ttls if ttl), default=NO_STATS.min_ttl),
    )
