"""Serialized partition updates (PartitionUpdate.PartitionUpdateSerializer, rows.UnfilteredRowIteratorSerializer).

Layout: table id (16 bytes), partition key, flags, header (statistics, columns), partition deletion, static row, row
count, rows and range tombstone markers in clustering order, 0x01.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from cassandra_storage.deletion import LIVE, RangeTombstone
from cassandra_storage.errors import FormatError, UnknownTableError
from cassandra_storage.header import (
    NO_COLUMNS,
    Columns,
    SerializationHeader,
    TableCodec,
    read_deletion_time,
    read_stats,
    skip_deletion_time,
    skip_stats,
    table_codec,
)
from cassandra_storage.partition import PartitionUpdate
from cassandra_storage.unfiltered import (
    END_OF_PARTITION,
    IS_MARKER,
    Marker,
    parse_marker,
    parse_row,
    skip_row,
    split_marker,
)
from cassandra_storage.versions import messaging_format
from cassandra_storage.vint import read_int, read_sized

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cassandra_storage.clustering import ClusteringBound
    from cassandra_storage.deletion import DeletionTime
    from cassandra_storage.rows import Row
    from cassandra_storage.schema import TableMetadata

_IS_EMPTY = 0x01
_HAS_PARTITION_DELETION = 0x04
_HAS_STATIC_ROW = 0x08
_HAS_ROW_ESTIMATE = 0x10
_VALID = frozenset(_HAS_ROW_ESTIMATE | flags for flags in (0, 0x04, 0x08, 0x0C))

_ID_SIZE = 16
_ENDED = "ends inside a partition update"
_NO_COLUMNS = b"\x00"
_ONE_ROW = b"\x01"  # the row estimate
_NO_ROWS = b"\x00"
_END = b"\x01"

UpdateKind: TypeAlias = Literal["row", "static", "partition_deletion", "range_deletion"]


class SingleRowUpdate(NamedTuple):
    """A part of a partition update that concerns one row, the static row, the whole partition, or one range of rows.

    `update` is a whole serialized PartitionUpdate of the same messaging version that holds just this part; a
    range_deletion holds exactly one open and one close marker.
    """

    kind: UpdateKind
    partition_key: bytes
    update: bytes


def read_partition_update(
    buf: bytes, pos: int, messaging_version: int, tables: Mapping[bytes, TableMetadata]
) -> tuple[PartitionUpdate, int]:
    """The update that starts at `pos` and the position behind it; `tables` by the 16 bytes of their id.

    Rows that hold nothing but cells of dropped columns are left out. FormatError on anything that is no update,
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
    markers: list[Marker] = []
    while buf[pos] != END_OF_PARTITION:
        if buf[pos] == IS_MARKER:
            marker, pos = parse_marker(buf, pos + 1, header)
            markers.append(marker)
        else:
            row, pos = parse_row(buf, pos, header, is_static=False)
            if not row.is_empty:
                rows.append(row)
    tombstones = tuple(_ranges(markers, pos))
    return PartitionUpdate(codec.table, key, deletion, static_row, tuple(rows), tombstones), pos + 1


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
    if flags not in _VALID:
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


def _ranges(markers: list[Marker], pos: int) -> Iterator[RangeTombstone]:
    """Pairs of bounds; MutableDeletionInfo.Builder."""
    opened: tuple[ClusteringBound, DeletionTime] | None = None
    for marker in markers:
        if (opened is None) is not (marker.close is None):
            raise FormatError("range tombstone markers do not pair", position=pos)
        if opened is not None and marker.close is not None:
            if opened[1] != marker.close[1]:
                raise FormatError("a range tombstone's ends have two deletion times", position=pos)
            yield RangeTombstone(opened[0], marker.close[0], opened[1])
        opened = marker.open_
    if opened is not None:
        raise FormatError("a range tombstone has no end", position=pos)


def split_partition_update(
    buf: bytes, pos: int, messaging_version: int, tables: Mapping[bytes, TableMetadata]
) -> tuple[list[SingleRowUpdate], TableMetadata, int]:
    """The parts of the update that starts at `pos`, its table, and the position behind it; errors as
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
    messaging_format(messaging_version)
    codec, key, flags_pos = _read_start(buf, start, tables)
    flags, pos = buf[flags_pos], flags_pos + 1
    if flags & _IS_EMPTY:
        return [], codec.table, pos
    _check_flags(flags, pos)
    stats_end = skip_stats(buf, pos)
    statics, regulars, pos = _read_columns(buf, stats_end, codec, flags)
    header = SerializationHeader(codec.clustering_lengths, statics, regulars)
    lead = _Lead(key, buf[start:flags_pos], buf[flags_pos + 1 : stats_end])
    parts: list[SingleRowUpdate] = []
    if flags & _HAS_PARTITION_DELETION:
        end = skip_deletion_time(buf, pos)
        parts.append(_part(lead, "partition_deletion", _HAS_PARTITION_DELETION, _NO_COLUMNS, buf[pos:end] + _NO_ROWS))
        pos = end
    if flags & _HAS_STATIC_ROW:
        end = skip_row(buf, pos, header, is_static=True)
        columns = statics.raw + _NO_COLUMNS
        parts.append(_part(lead, "static", _HAS_STATIC_ROW, columns, buf[pos:end] + _NO_ROWS))
        pos = end
    _, pos = _read_estimate(buf, pos)
    pos = _split_unfiltereds(buf, pos, header, lead, parts)
    return parts, codec.table, pos


class _Lead(NamedTuple):
    """What every part of an update begins with: the key, table id + serialized key, and the statistics."""

    partition_key: bytes
    id_and_key: bytes
    stats: bytes


def _part(lead: _Lead, kind: UpdateKind, flags: int, columns: bytes, body: bytes) -> SingleRowUpdate:
    """`body`: partition deletion, static row, row count, unfiltereds, as far as there are any."""
    update = lead.id_and_key + bytes((_HAS_ROW_ESTIMATE | flags,)) + lead.stats + columns + body + _END
    return SingleRowUpdate(kind, lead.partition_key, update)


def _split_unfiltereds(
    buf: bytes, pos: int, header: SerializationHeader, lead: _Lead, parts: list[SingleRowUpdate]
) -> int:
    """Rows and ranges up to the end of the partition; the position behind it."""
    row_lead = lead.id_and_key + bytes((_HAS_ROW_ESTIMATE,)) + lead.stats + header.regular_columns.raw + _ONE_ROW
    opened: bytes | None = None
    while (flags := buf[pos]) != END_OF_PARTITION:
        if flags == IS_MARKER:
            close, open_, end = split_marker(buf, pos + 1, header.clustering_lengths)
            if (opened is None) is not (close is None):
                raise FormatError("range tombstone markers do not pair", position=pos)
            if opened is not None and close is not None:
                parts.append(_part(lead, "range_deletion", 0, _NO_COLUMNS, _NO_ROWS + opened + close))
            opened = open_
        else:
            end = skip_row(buf, pos, header, is_static=False)
            parts.append(SingleRowUpdate("row", lead.partition_key, row_lead + buf[pos:end] + _END))
        pos = end
    if opened is not None:
        raise FormatError("a range tombstone has no end", position=pos)
    return pos + 1
