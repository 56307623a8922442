"""Serialized partition updates as Cassandra writes them, from their parts: the tests' writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hypothesis import strategies as st

from cassandra_storage.formats.primitives.vint import write_sized, write_unsigned_vint
from cassandra_storage.formats.rows.clustering import ClusteringBound, Kind
from cassandra_storage.formats.rows.clustering_prefix import write_bound
from cassandra_storage.formats.rows.deletion import LIVE, DeletionTime, RangeTombstone
from cassandra_storage.formats.rows.header import SerializationHeader, write_deletion_time, write_stats
from cassandra_storage.formats.rows.partition import PartitionUpdate
from cassandra_storage.formats.rows.row import Row
from cassandra_storage.formats.rows.unfiltered import write_row
from tests.support.cassandra_storage import strategies
from tests.support.cassandra_storage.as_read import update_as_read

if TYPE_CHECKING:
    from cassandra_storage.formats.schema.tables import TableMetadata

VERSION = 13

BOUNDARIES = {
    (Kind.EXCL_END_BOUND, Kind.INCL_START_BOUND): Kind.EXCL_END_INCL_START_BOUNDARY,
    (Kind.INCL_END_BOUND, Kind.EXCL_START_BOUND): Kind.INCL_END_EXCL_START_BOUNDARY,
}


class Written(NamedTuple):
    """An update's bytes, and what they are read as."""

    update: PartitionUpdate
    data: bytes


def write_update(
    update: PartitionUpdate, unfiltereds: list[Row | RangeTombstone], header: SerializationHeader
) -> bytes:
    """UnfilteredRowIteratorSerializer.serialize; ranges whose bounds touch share a boundary."""
    has_static = update.static_row is not None
    flags = 0x10 | (0x04 if not update.deletion.is_live else 0) | (0x08 if has_static else 0)
    parts = [update.table.id.bytes, write_sized(update.partition_key), bytes((flags,)), write_stats(header.stats)]
    if has_static:
        parts.append(header.static_columns.raw)
    parts.append(header.regular_columns.raw)
    if not update.deletion.is_live:
        parts.append(write_deletion_time(update.deletion, header))
    if update.static_row is not None:
        parts.append(write_row(update.static_row, header, is_static=True))
    parts.append(write_unsigned_vint(len(update.rows)))
    parts.append(_unfiltereds(unfiltereds, header))
    return b"".join(parts) + b"\x01"


def _unfiltereds(unfiltereds: list[Row | RangeTombstone], header: SerializationHeader) -> bytes:
    def marker(bound: ClusteringBound, *deletions: DeletionTime) -> bytes:
        times = b"".join(write_deletion_time(deletion, header) for deletion in deletions)
        return b"\x02" + write_bound(bound, header.clustering_lengths) + times

    parts = []
    opened: RangeTombstone | None = None
    for one in [*unfiltereds, None]:
        start = one.start if isinstance(one, RangeTombstone) else None
        if opened is not None:
            kind = BOUNDARIES.get((opened.end.kind, start.kind)) if start is not None else None
            if kind is not None and start is not None and start.values == opened.end.values:
                assert isinstance(one, RangeTombstone)
                parts.append(marker(ClusteringBound(kind, start.values), opened.deletion, one.deletion))
                opened = one
                continue
            parts.append(marker(opened.end, opened.deletion))
            opened = None
        if isinstance(one, RangeTombstone):
            parts.append(marker(one.start, one.deletion))
            opened = one
        elif one is not None:
            parts.append(write_row(one, header))
    return b"".join(parts)


@st.composite
def updates(
    draw: st.DrawFn, tables: st.SearchStrategy[TableMetadata] | None = None, *, nulls: bool = True, ranges: bool = True
) -> Written:
    """An update and its bytes. The order of rows and ranges is not the comparator's: readers do not compare."""
    table = draw(strategies.tables() if tables is None else tables)
    header = SerializationHeader.of_table(table, draw(strategies.stats), VERSION)
    unfiltereds: list[Row | RangeTombstone] = []
    for _ in range(draw(st.integers(0, 3))):
        if ranges and table.clustering and draw(st.booleans()):
            tombstone = draw(strategies.ranges(table))
            before = unfiltereds[-1] if unfiltereds else None
            if isinstance(before, RangeTombstone) and draw(st.booleans()):
                tombstone = tombstone._replace(start=_touching(before.end))
            unfiltereds.append(tombstone)
        elif table.clustering or not unfiltereds:
            unfiltereds.append(draw(strategies.rows(table, nulls=nulls)))
    static_row = None
    if bool(table.static_columns) and draw(st.booleans()):
        static_row = draw(strategies.rows(table, is_static=True))
    update = PartitionUpdate(
        table,
        draw(st.binary(max_size=10)),
        draw(st.just(LIVE) | strategies.deletion_times),
        static_row,
        tuple(one for one in unfiltereds if isinstance(one, Row)),
        tuple(one for one in unfiltereds if isinstance(one, RangeTombstone)),
    )
    return Written(update_as_read(update, header.stats), write_update(update, unfiltereds, header))


def _touching(end: ClusteringBound) -> ClusteringBound:
    inclusive = end.kind is Kind.INCL_END_BOUND
    return ClusteringBound(Kind.EXCL_START_BOUND if inclusive else Kind.INCL_START_BOUND, end.values)
