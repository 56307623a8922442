"""Serialized rows and range tombstone markers (org.apache.cassandra.db.rows.UnfilteredSerializer).

A row is flags, clustering, liveness, deletion, the subset of the header's columns that it has, and their cells; it
carries no size, so that its end is known only by walking its cells. `skip_*` walk without making values; `parse_*`
read. Both may raise IndexError at the buffer's end and skip_* may end past it: callers check. Any module may use
`read_row` and `write_row`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives.vint import SIZES, read_int, write_unsigned_vint
from cassandra_storage.formats.rows.cells import read_cell, skip_cell, write_cell
from cassandra_storage.formats.rows.clustering import Clustering, ClusteringBound, Kind
from cassandra_storage.formats.rows.clustering_prefix import (
    read_bound,
    read_values,
    skip_bound,
    skip_values,
    write_values,
)
from cassandra_storage.formats.rows.deletion import (
    LIVE,
    NO_LIVENESS,
    NO_ROW_DELETION,
    NO_TTL,
    DeletionTime,
    LivenessInfo,
    RowDeletion,
)
from cassandra_storage.formats.rows.header import (
    Columns,
    decode_local_deletion_time,
    read_deletion_delta,
    read_deletion_time,
    read_timestamp,
    read_ttl,
    skip_deletion_time,
    write_deletion_time,
    write_local_deletion_time,
    write_timestamp,
    write_ttl,
)
from cassandra_storage.formats.rows.row import Cell, ColumnData, ComplexColumnData, Row

if TYPE_CHECKING:
    from cassandra_storage.formats.rows.header import ColumnLayout, SerializationHeader

END_OF_PARTITION = 0x01
IS_MARKER = 0x02
_HAS_TIMESTAMP = 0x04
_HAS_TTL = 0x08
_HAS_DELETION = 0x10
_HAS_ALL_COLUMNS = 0x20
_HAS_COMPLEX_DELETION = 0x40
_EXTENSION = 0x80
# The second byte, where _EXTENSION says that there is one.
_IS_STATIC = 0x01
_HAS_SHADOWABLE_DELETION = 0x02
_ALL_COLUMNS = tuple(bytes((flags | _HAS_ALL_COLUMNS,)) for flags in range(0x100))

_ENDED = "ends inside a row"


class Marker(NamedTuple):
    """RangeTombstoneMarker: a bound closes the range before it (`close`), opens the next one (`open_`), or both."""

    # The bound that closes the range before it, and that range's deletion; None if none is open.
    close: tuple[ClusteringBound, DeletionTime] | None
    # The bound that opens the next range, and that range's deletion; None if none follows at once.
    open_: tuple[ClusteringBound, DeletionTime] | None


# A marker's kind: (the bound that it closes, the bound that it opens).
MARKER_KINDS: dict[Kind, tuple[Kind | None, Kind | None]] = {
    Kind.EXCL_END_BOUND: (Kind.EXCL_END_BOUND, None),
    Kind.INCL_END_BOUND: (Kind.INCL_END_BOUND, None),
    Kind.INCL_START_BOUND: (None, Kind.INCL_START_BOUND),
    Kind.EXCL_START_BOUND: (None, Kind.EXCL_START_BOUND),
    Kind.EXCL_END_INCL_START_BOUNDARY: (Kind.EXCL_END_BOUND, Kind.INCL_START_BOUND),
    Kind.INCL_END_EXCL_START_BOUNDARY: (Kind.INCL_END_BOUND, Kind.EXCL_START_BOUND),
}


def read_row(buf: bytes, pos: int, header: SerializationHeader, *, is_static: bool = False) -> tuple[Row, int]:
    """One row and the position after it; FormatError on anything that is none. Cells that a DROP of their column
    covers are left out, so the row may be empty.
    """
    try:
        return parse_row(buf, pos, header, is_static=is_static)
    except IndexError:
        raise FormatError(_ENDED, position=len(buf)) from None


def parse_row(buf: bytes, pos: int, header: SerializationHeader, *, is_static: bool) -> tuple[Row, int]:
    """A row as messages and commit logs have it, without sizes."""
    head, pos = parse_row_head(buf, pos, header, is_static=is_static)
    return parse_row_body(buf, pos, header, head, is_static=is_static)


Unfiltered: TypeAlias = "Row | Marker"


class RowHead(NamedTuple):
    """The beginning of a row. In an SSTable the sizes of this row and of the one before follow, then the body."""

    # UnfilteredSerializer's flags.
    flags: int
    # The extended flags; 0 if none are written.
    extended: int
    # The serialized values of the clustering columns; empty for the static row.
    clustering: Clustering


def parse_row_head(buf: bytes, pos: int, header: SerializationHeader, *, is_static: bool) -> tuple[RowHead, int]:
    """A row's flags and clustering; the position after them."""
    flags, extended, pos = _row_flags(buf, pos, is_static=is_static)
    if is_static:
        return RowHead(flags, extended, ()), pos
    clustering, pos = read_values(buf, pos, header.clustering_lengths, len(header.clustering_lengths))
    return RowHead(flags, extended, clustering), pos


def parse_row_body(
    buf: bytes, pos: int, header: SerializationHeader, head: RowHead, *, is_static: bool
) -> tuple[Row, int]:
    """UnfilteredSerializer.deserializeRowBody of the row with that head, after its sizes if it has any."""
    flags, extended, clustering = head
    liveness = NO_LIVENESS
    if flags & _HAS_TIMESTAMP:
        liveness, pos = _parse_liveness(buf, pos, header, has_ttl=bool(flags & _HAS_TTL))
    deletion = NO_ROW_DELETION
    if flags & _HAS_DELETION:
        time, pos = read_deletion_time(buf, pos, header)
        deletion = RowDeletion(time, bool(extended & _HAS_SHADOWABLE_DELETION))
    columns = header.static_columns if is_static else header.regular_columns
    if not flags & _HAS_ALL_COLUMNS:
        columns, pos = columns.read_subset(buf, pos)
    data: dict[str, ColumnData] = {}
    for layout in columns.layouts:
        if layout.is_complex:
            has_deletion = bool(flags & _HAS_COMPLEX_DELETION)
            complex_data, pos = _parse_complex(buf, pos, header, liveness, layout, has_deletion=has_deletion)
            if complex_data is not None:
                data[layout.name] = complex_data
        else:
            cell, pos = read_cell(buf, pos, header, liveness, layout)
            if cell.timestamp > layout.dropped_time:
                data[layout.name] = cell
    return Row(clustering, data, liveness, deletion), pos


def _row_flags(buf: bytes, pos: int, *, is_static: bool) -> tuple[int, int, int]:
    """(flags, extended flags, position after them). Extended flags without a defined meaning are ignored."""
    flags = buf[pos]
    if not flags & _EXTENSION:
        extended, end = 0, pos + 1
    else:
        extended, end = buf[pos + 1], pos + 2
    if flags & (END_OF_PARTITION | IS_MARKER) or bool(extended & _IS_STATIC) is not is_static:
        raise FormatError(f"row with invalid flags {flags:#04x} {extended:#04x}", position=pos)
    return flags, extended, end


def _parse_liveness(buf: bytes, pos: int, header: SerializationHeader, *, has_ttl: bool) -> tuple[LivenessInfo, int]:
    timestamp, pos = read_timestamp(buf, pos, header.stats)
    if not has_ttl:
        return LivenessInfo(timestamp), pos
    ttl, pos = read_ttl(buf, pos, header.stats)
    value, pos = read_deletion_delta(buf, pos, header)
    if ttl == NO_TTL:
        return LivenessInfo(timestamp), pos
    return LivenessInfo(timestamp, ttl, decode_local_deletion_time(value, ttl, header)), pos


def _parse_complex(  # noqa: PLR0913  a position and what its row says
    buf: bytes,
    pos: int,
    header: SerializationHeader,
    liveness: LivenessInfo,
    layout: ColumnLayout,
    *,
    has_deletion: bool,
) -> tuple[ComplexColumnData | None, int]:
    """UnfilteredSerializer.readComplexColumn; None if it says nothing."""
    deletion = LIVE
    if has_deletion:
        deletion, pos = read_deletion_time(buf, pos, header)
        if deletion.marked_for_delete_at <= layout.dropped_time:
            deletion = LIVE
    count, pos = read_int(buf, pos)
    cells = []
    for _ in range(count):
        cell, pos = read_cell(buf, pos, header, liveness, layout)
        if cell.timestamp > layout.dropped_time:
            cells.append(cell)
    if not cells and deletion is LIVE:
        return None, pos
    return ComplexColumnData(deletion, tuple(cells)), pos


class RowExtent(NamedTuple):
    """The parts of a serialized row."""

    # The row's own columns.
    columns: Columns
    # The position at which their subset of the header's columns is written, up to `cells_start`.
    subset_start: int
    # The position of the first cell.
    cells_start: int
    # It may lie past the buffer's end; if so, the other positions may too.
    end: int


def skip_row(buf: bytes, pos: int, header: SerializationHeader, *, is_static: bool) -> RowExtent:
    """The row's extent, without making any of its values. What parse_row refuses, this does, except for the end."""
    flags, _, pos = _row_flags(buf, pos, is_static=is_static)
    if not is_static:
        pos = skip_values(buf, pos, header.clustering_lengths, len(header.clustering_lengths))
    if flags & _HAS_TIMESTAMP:
        pos += SIZES[buf[pos]]
        if flags & _HAS_TTL:
            _, pos = read_ttl(buf, pos, header.stats)
            pos += SIZES[buf[pos]]
    if flags & _HAS_DELETION:
        pos = skip_deletion_time(buf, pos)
    columns = header.static_columns if is_static else header.regular_columns
    subset_start = pos
    if not flags & _HAS_ALL_COLUMNS:
        columns, pos = columns.read_subset(buf, pos)
    cells_start = pos
    for layout in columns.layouts:
        if not layout.is_complex:
            pos = skip_cell(buf, pos, header.stats, layout)
            continue
        if flags & _HAS_COMPLEX_DELETION:
            pos = skip_deletion_time(buf, pos)
        count, pos = read_int(buf, pos)
        for _ in range(count):
            pos = skip_cell(buf, pos, header.stats, layout)
    return RowExtent(columns, subset_start, cells_start, pos)


def row_pieces(buf: bytes, pos: int, row: RowExtent) -> tuple[bytes, ...]:
    """The row that is at `pos` as UnfilteredSerializer.serialize writes it in a header of its own columns only."""
    flags = buf[pos]
    if flags & _HAS_ALL_COLUMNS:
        return (buf[pos : row.end],)
    has_all = _ALL_COLUMNS[flags]
    return has_all, buf[pos + 1 : row.subset_start], buf[row.cells_start : row.end]


def parse_marker(buf: bytes, pos: int, header: SerializationHeader) -> tuple[Marker, int]:
    """A marker as messages and commit logs have it, without sizes."""
    kind, values, pos = parse_marker_head(buf, pos, header)
    return parse_marker_body(buf, pos, header, kind, values)


def parse_marker_head(buf: bytes, pos: int, header: SerializationHeader) -> tuple[Kind, Clustering, int]:
    """A marker's kind and values, and the position after them; in an SSTable two sizes follow, as for a row."""
    return read_bound(buf, _skip_flags(buf, pos), header.clustering_lengths)


def parse_marker_body(
    buf: bytes, pos: int, header: SerializationHeader, kind: Kind, values: Clustering
) -> tuple[Marker, int]:
    """UnfilteredSerializer.deserializeMarkerBody, after its sizes if it has any."""
    close_kind, open_kind = MARKER_KINDS[kind]
    close = open_ = None
    if close_kind is not None:
        deletion, pos = read_deletion_time(buf, pos, header)
        close = ClusteringBound(close_kind, values), deletion
    if open_kind is not None:
        deletion, pos = read_deletion_time(buf, pos, header)
        open_ = ClusteringBound(open_kind, values), deletion
    return Marker(close, open_), pos


def _skip_flags(buf: bytes, pos: int) -> int:
    return pos + (2 if buf[pos] & _EXTENSION else 1)


def split_marker(buf: bytes, pos: int, clustering_lengths: tuple[int, ...]) -> tuple[bytes | None, bytes | None]:
    """(the marker that closes the range before, the one that opens the next): a boundary gives both. Each is a whole
    serialized marker. The marker at `pos` must have been parsed before.
    """
    start = _skip_flags(buf, pos)
    kind, pos = skip_bound(buf, start, clustering_lengths)
    values = buf[start + 1 : pos]
    markers: list[bytes | None] = []
    for own_kind in MARKER_KINDS[kind]:
        if own_kind is None:
            markers.append(None)
            continue
        end = skip_deletion_time(buf, pos)
        markers.append(bytes((IS_MARKER, own_kind)) + values + buf[pos:end])
        pos = end
    return markers[0], markers[1]


def write_row(row: Row, header: SerializationHeader, *, is_static: bool = False) -> bytes:
    """UnfilteredSerializer.serialize of a row, byte for byte. FormatError if the header lacks a column of the row or
    has it with another kind of type (multi-cell or not).

    Of local deletion times the header's messaging version must be able to hold them (13 holds all).
    """
    columns = header.static_columns if is_static else header.regular_columns
    present = _present(row, columns)
    flags, extended = _flags_of(row, columns, is_static=is_static)
    parts = [bytes((flags, extended)) if flags & _EXTENSION else bytes((flags,))]
    if not is_static:
        parts.append(write_values(row.clustering, header.clustering_lengths))
    if flags & _HAS_TIMESTAMP:
        parts.append(write_timestamp(row.liveness.timestamp, header.stats))
    if flags & _HAS_TTL:
        parts.append(write_ttl(row.liveness.ttl, header.stats))
        parts.append(write_local_deletion_time(row.liveness.local_expiration_time, header))
    if flags & _HAS_DELETION:
        parts.append(write_deletion_time(row.deletion.time, header))
    if not flags & _HAS_ALL_COLUMNS:
        parts.append(columns.write_subset(present))
    for index in present:
        layout = columns.layouts[index]
        data = row.columns[layout.name]
        if isinstance(data, Cell):
            parts.append(write_cell(data, header, row.liveness, layout))
            continue
        if flags & _HAS_COMPLEX_DELETION:
            parts.append(write_deletion_time(data.deletion, header))
        parts.append(write_unsigned_vint(len(data.cells)))
        parts.extend(write_cell(cell, header, row.liveness, layout) for cell in data.cells)
    return b"".join(parts)


def _present(row: Row, columns: Columns) -> list[int]:
    """The places of the row's columns in the header's, in order."""
    present = []
    for name, data in row.columns.items():
        index = columns.index.get(name)
        if index is None or columns.layouts[index].is_complex is not isinstance(data, ComplexColumnData):
            raise FormatError(f"column {name!r} has no place in the header, or one of another kind of type")
        present.append(index)
    present.sort()
    return present


def _flags_of(row: Row, columns: Columns, *, is_static: bool) -> tuple[int, int]:
    """(flags, extended flags)."""
    flags = 0
    extended = _IS_STATIC if is_static else 0
    if not row.liveness.is_empty:
        flags |= _HAS_TIMESTAMP
        if row.liveness.ttl != NO_TTL:
            flags |= _HAS_TTL
    if not row.deletion.time.is_live:
        flags |= _HAS_DELETION
        if row.deletion.is_shadowable:
            extended |= _HAS_SHADOWABLE_DELETION
    if any(isinstance(data, ComplexColumnData) and not data.deletion.is_live for data in row.columns.values()):
        flags |= _HAS_COMPLEX_DELETION
    if len(row.columns) == len(columns.layouts):
        flags |= _HAS_ALL_COLUMNS
    if extended:
        flags |= _EXTENSION
    return flags, extended
