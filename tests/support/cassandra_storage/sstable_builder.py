"""The data of SSTables as Cassandra writes them, from their parts: the tests' writer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.primitives.vint import write_unsigned_vint
from cassandra_storage.formats.rows.clustering import ClusteringBound, Kind
from cassandra_storage.formats.rows.clustering_prefix import write_bound
from cassandra_storage.formats.rows.deletion import LIVE, NO_DELETION_TIME, DeletionTime
from cassandra_storage.formats.rows.header import write_deletion_time
from cassandra_storage.formats.rows.row import Row
from cassandra_storage.formats.rows.unfiltered import Marker, parse_marker_head, parse_row_head, write_row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cassandra_storage.formats.rows.header import SerializationHeader
    from cassandra_storage.formats.sstable.versions import SSTableFormat

END = b"\x01"
_EMPTY_STATIC = Row((), {})
_BOUNDARIES = {
    (Kind.EXCL_END_BOUND, Kind.INCL_START_BOUND): Kind.EXCL_END_INCL_START_BOUNDARY,
    (Kind.INCL_END_BOUND, Kind.EXCL_START_BOUND): Kind.INCL_END_EXCL_START_BOUNDARY,
}


def partition(
    key: bytes,
    unfiltereds: Iterable[Row | Marker],
    header: SerializationHeader,
    form: SSTableFormat,
    *,
    deletion: DeletionTime = LIVE,
    static_row: Row | None = None,
) -> bytes:
    """SortedTablePartitionWriter: a whole partition."""
    parts = [partition_head(key, header, form, deletion=deletion, static_row=static_row)]
    before = 0
    for one in unfiltereds:
        data = row(one, header, before) if isinstance(one, Row) else marker(one, header, before)
        parts.append(data)
        before = len(data)
    return b"".join(parts) + END


def partition_head(
    key: bytes,
    header: SerializationHeader,
    form: SSTableFormat,
    *,
    deletion: DeletionTime = LIVE,
    static_row: Row | None = None,
) -> bytes:
    head = len(key).to_bytes(2, "big") + key + partition_deletion(deletion, form)
    if header.static_columns.layouts:
        head += row(static_row or _EMPTY_STATIC, header, 0, is_static=True)
    return head


def partition_deletion(deletion: DeletionTime, form: SSTableFormat) -> bytes:
    timestamp = deletion.marked_for_delete_at.to_bytes(8, "big", signed=True)
    if form.has_uint_deletion_time:
        return b"\x80" if deletion.is_live else timestamp + deletion.local_deletion_time.to_bytes(4, "big")
    seconds = deletion.local_deletion_time
    return (2**31 - 1 if seconds == NO_DELETION_TIME else seconds).to_bytes(4, "big", signed=True) + timestamp


def row(of: Row, header: SerializationHeader, before: int, *, is_static: bool = False) -> bytes:
    """UnfilteredSerializer.serialize for an SSTable; `before`: the size of the row or marker before it."""
    data = write_row(of, header, is_static=is_static)
    _, start = parse_row_head(data, 0, header, is_static=is_static)
    return with_sizes(data, start, before)


def marker(of: Marker, header: SerializationHeader, before: int) -> bytes:
    ends = [end for end in of if end is not None]
    kind = ends[0][0].kind if len(ends) == 1 else _BOUNDARIES[ends[0][0].kind, ends[1][0].kind]
    bound = write_bound(ClusteringBound(kind, ends[0][0].values), header.clustering_lengths)
    data = b"\x02" + bound + b"".join(write_deletion_time(deletion, header) for _, deletion in ends)
    *_, start = parse_marker_head(data, 0, header)
    return with_sizes(data, start, before)


def with_sizes(data: bytes, start: int, before: int) -> bytes:
    previous = write_unsigned_vint(before)
    return data[:start] + write_unsigned_vint(len(previous) + len(data) - start) + previous + data[start:]
