"""Serialized partition updates (PartitionUpdate.PartitionUpdateSerializer, rows.UnfilteredRowIteratorSerializer).

Layout: table id (16 bytes), partition key, flags, header (statistics, columns), partition deletion, static row, row
count, rows and range tombstone markers in clustering order, 0x01.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from cassandra_storage.formats.errors import FormatError, UnknownTableError
from cassandra_storage.formats.primitives.vint import read_int, read_sized
from cassandra_storage.formats.rows.deletion import LIVE, RangeTombstone
from cassandra_storage.formats.rows.header import (
    NO_COLUMNS,
    Columns,
    SerializationHeader,
    TableCodec,
    read_deletion_time,
    read_stats,
    skip_deletion_time,
    table_codec,
)
from cassandra_storage.formats.rows.partition import PartitionUpdate
from cassandra_storage.formats.rows.unfiltered import (
    END_OF_PARTITION,
    IS_MARKER,
    Marker,
    parse_marker,
    parse_row,
    row_pieces,
    skip_row,
    split_marker,
)
from cassandra_storage.formats.versions import messaging_format

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cassandra_storage.formats.rows.clustering import ClusteringBound
    from cassandra_storage.formats.rows.deletion import DeletionTime
    from cassandra_storage.formats.rows.row import Row
    from cassandra_storage.formats.schema.tables import TableMetadata

_IS_EMPTY = 0x01
_IS_REVERSED = 0x02
_HAS_PARTITION_DELETION = 0x04
_HAS_STATIC_ROW = 0x08
_HAS_ROW_ESTIMATE = 0x10

_ID_SIZE = 16
_ENDED = "ends inside a partition update"
_NO_COLUMNS = b"\x00"
_ONE_ROW = b"\x01"  # the row estimate
_NO_ROWS = b"\x00"
_END = b"\x01"

UpdateKind: TypeAlias = Literal["row", "static", "partition_deletion", "range_deletion"]


class SingleRowUpdate(NamedTuple):
    """A part of a partition update that concerns one row, the static row, the whole partition, or one range of rows.

    `update` is a whole serialized PartitionUpdate of the same messaging version that holds just this part: with the
    statistics of the update that it comes from and the columns of its own row; a range_deletion holds exactly one open
    and one close marker.
    """

    # The element that it concerns.
    kind: UpdateKind
    # The serialized partition key.
    partition_key: bytes
    # The bytes of `update`. Parts share the pieces that they have in common, so that all parts of an update take no
    # more memory than its rows and the names of their columns, however long its key is.
    pieces: tuple[bytes, ...]

    @property
    def update(self) -> bytes:
        return b"".join(self.pieces)


def read_partition_update(
    buf: bytes, pos: int, messaging_version: int, tables: Mapping[bytes, TableMetadata]
) -> tuple[PartitionUpdate, int]:
    """The update that starts at `pos` and the position after it; `tables` by the 16 bytes of their id.

    Rows that hold only cells of dropped columns are left out. FormatError on anything that is no update,
    UnknownTableError and UnknownColumnError where the tables do not fit it.
    """
    try:
        return _read(buf, pos, messaging_version, tables)
    except IndexError:
        raise FormatError(_ENDED, position=len(buf)) from None


def _read(
    buf: bytes, pos: int, messaging_version: int, tables: Mapping[bytes, TableMetadata]
) -> tuple[PartitionUpdate, int]:
    codec, key, pos = _read_start(buf, pos, tables)
    flags, pos = buf[pos], pos + 1
    if flags & _IS_EMPTY:
        return PartitionUpdate(codec.table, key), pos
    _check_flags(flags, pos)
    stats, pos = read_stats(buf, pos)
    statics, regulars, pos = _read_columns(buf, pos, codec, flags)
    form = messaging_format(messaging_version)
    header = SerializationHeader(codec.clustering_lengths, statics, regulars, stats, form)
    deletion = LIVE
    if flags & _HAS_PARTITION_DELETION:
        deletion, pos = read_deletion_time(buf, pos, header)
    static_row = None
    if flags & _HAS_STATIC_ROW:
        static_row, pos = parse_row(buf, pos, header, is_static=True)
        static_row = None if static_row.is_empty else static_row
    _, pos = _read_estimate(buf, pos)
    rows: list[Row] = []
    markers: list[tuple[Marker, int]] = []
    while not (flags := buf[pos]) & END_OF_PARTITION:
        if flags & IS_MARKER:
            start = pos
            marker, pos = parse_marker(buf, pos, header)
            markers.append((marker, start))
        else:
            row, pos = parse_row(buf, pos, header, is_static=False)
            if not row.is_empty:
                rows.append(row)
    return PartitionUpdate(codec.table, key, deletion, static_row, tuple(rows), tuple(_ranges(markers))), pos + 1


def _read_start(buf: bytes, pos: int, tables: Mapping[bytes, TableMetadata]) -> tuple[TableCodec, bytes, int]:
    """(the table, the partition key, position of the flags)."""
    end = pos + _ID_SIZE
    if end > len(buf):
        raise FormatError(_ENDED, position=pos)
    table_id = buf[pos:end]
    table = tables.get(table_id)
    if table is None:
        raise UnknownTableError(table_id, position=pos)
    key, end = read_sized(buf, end)
    return table_codec(table), key, end


def _check_flags(flags: int, pos: int) -> None:
    """PartitionUpdateSerializer.deserialize; flags without a defined meaning are ignored."""
    if flags & (_IS_REVERSED | _HAS_ROW_ESTIMATE) != _HAS_ROW_ESTIMATE:
        raise FormatError(f"partition update with invalid flags {flags:#04x}", position=pos - 1)


def _read_columns(buf: bytes, pos: int, codec: TableCodec, flags: int) -> tuple[Columns, Columns, int]:
    statics = NO_COLUMNS
    if flags & _HAS_STATIC_ROW:
        statics, pos = codec.read_columns(buf, pos, is_static=True)
    regulars, pos = codec.read_columns(buf, pos, is_static=False)
    return statics, regulars, pos


def _read_estimate(buf: bytes, pos: int) -> tuple[int, int]:
    estimate, end = read_int(buf, pos)
    if estimate < 0:
        raise FormatError(f"row count {estimate}", position=pos)
    return estimate, end


def _ranges(markers: list[tuple[Marker, int]]) -> Iterator[RangeTombstone]:
    """Pairs of bounds, from markers and their positions; MutableDeletionInfo.Builder."""
    opened: tuple[ClusteringBound, DeletionTime] | None = None
    for marker, pos in markers:
        if marker.close is not None:
            start = _opened_for(marker, opened, pos)
            yield RangeTombstone(start, *marker.close)
        if marker.open_ is not None:
            opened = marker.open_


def _opened_for(marker: Marker, opened: tuple[ClusteringBound, DeletionTime] | None, pos: int) -> ClusteringBound:
    """The bound that the marker's close belongs to. One that nothing closes deletes nothing, as in Cassandra."""
    assert marker.close is not None
    if opened is None:
        raise FormatError("a range tombstone has no start", position=pos)
    if opened[1] != marker.close[1]:
        raise FormatError("a range tombstone's ends have two deletion times", position=pos)
    return opened[0]


def columns_of(buf: bytes, pos: int, tables: Mapping[bytes, TableMetadata]) -> tuple[Columns, Columns]:
    """(static, regular columns) that the header of the update at `pos` names; errors as read_partition_update."""
    try:
        codec, _, pos = _read_start(buf, pos, tables)
        flags, pos = buf[pos], pos + 1
        if flags & _IS_EMPTY:
            return NO_COLUMNS, NO_COLUMNS
        _check_flags(flags, pos)
        _, pos = read_stats(buf, pos)
        statics, regulars, _ = _read_columns(buf, pos, codec, flags)
    except IndexError:
        raise FormatError(_ENDED, position=len(buf)) from None
    return statics, regulars


def split_partition_update(
    buf: bytes, pos: int, messaging_version: int, tables: Mapping[bytes, TableMetadata]
) -> tuple[list[SingleRowUpdate], TableMetadata, int]:
    """The parts of the update that starts at `pos`, its table, and the position after it; errors as
    read_partition_update.

    In this order: partition deletion, static row, rows and ranges in clustering order. An empty update has no parts.
    Values are not looked into, so a row part may turn out empty when it is read (cells of dropped columns).
    """
    try:
        return _split(buf, pos, messaging_version, tables)
    except IndexError:
        raise FormatError(_ENDED, position=len(buf)) from None


def _split(
    buf: bytes, start: int, messaging_version: int, tables: Mapping[bytes, TableMetadata]
) -> tuple[list[SingleRowUpdate], TableMetadata, int]:
    codec, key, flags_pos = _read_start(buf, start, tables)
    flags, pos = buf[flags_pos], flags_pos + 1
    if flags & _IS_EMPTY:
        return [], codec.table, pos
    _check_flags(flags, pos)
    stats, stats_end = read_stats(buf, pos)
    statics, regulars, pos = _read_columns(buf, stats_end, codec, flags)
    form = messaging_format(messaging_version)
    header = SerializationHeader(codec.clustering_lengths, statics, regulars, stats, form)
    lead = _Lead(key, buf[start:flags_pos], buf[flags_pos + 1 : stats_end])
    parts: list[SingleRowUpdate] = []
    if flags & _HAS_PARTITION_DELETION:
        end = skip_deletion_time(buf, pos)
        parts.append(
            SingleRowUpdate(
                "partition_deletion",
                key,
                (lead.with_flags(_HAS_PARTITION_DELETION), _NO_COLUMNS, buf[pos:end], _NO_ROWS + _END),
            )
        )
        pos = end
    if flags & _HAS_STATIC_ROW:
        row = skip_row(buf, pos, header, is_static=True)
        pieces = row_pieces(buf, pos, row)
        parts.append(
            SingleRowUpdate(
                "static",
                key,
                (lead.with_flags(_HAS_STATIC_ROW), row.columns.raw, _NO_COLUMNS, *pieces, _NO_ROWS + _END),
            )
        )
        pos = row.end
    _, pos = _read_estimate(buf, pos)
    pos = _split_unfiltereds(buf, pos, header, lead, parts)
    return parts, codec.table, pos


class _Lead(NamedTuple):
    """The beginning that every part of an update has: the key, table id + serialized key, and the statistics."""

    partition_key: bytes
    id_and_key: bytes
    stats: bytes

    def with_flags(self, flags: int) -> bytes:
        return self.id_and_key + bytes((_HAS_ROW_ESTIMATE | flags,)) + self.stats


def _split_unfiltereds(
    buf: bytes, pos: int, header: SerializationHeader, lead: _Lead, parts: list[SingleRowUpdate]
) -> int:
    """Rows and ranges up to the end of the partition; the position after it."""
    key, row_lead = lead.partition_key, lead.with_flags(0)
    opened: tuple[Marker, bytes] | None = None
    while not (flags := buf[pos]) & END_OF_PARTITION:
        if flags & IS_MARKER:
            marker, end = parse_marker(buf, pos, header)
            close, open_ = split_marker(buf, pos, header.clustering_lengths)
            if close is not None:
                _opened_for(marker, opened and opened[0].open_, pos)
                assert opened is not None
                range_pieces = (row_lead, _NO_COLUMNS + _NO_ROWS, opened[1], close, _END)
                parts.append(SingleRowUpdate("range_deletion", key, range_pieces))
            if open_ is not None:
                opened = marker, open_
        else:
            row = skip_row(buf, pos, header, is_static=False)
            pieces = (row_lead, row.columns.raw, _ONE_ROW, *row_pieces(buf, pos, row), _END)
            parts.append(SingleRowUpdate("row", key, pieces))
            end = row.end
        pos = end
    return pos + 1
