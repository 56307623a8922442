"""Statements, each as what one raw message contains, and as what it does to the plain model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.rows.clustering import ClusteringBound, Kind
from cassandra_storage.formats.rows.deletion import (
    LIVE,
    NO_LIVENESS,
    DeletionTime,
    LivenessInfo,
    RangeTombstone,
    RowDeletion,
)
from cassandra_storage.formats.rows.row import Cell, ComplexColumnData, Row
from cassandra_storage.formats.schema.tables import ColumnMetadata
from cassandra_storage.formats.types.marshal import ListType, MapType, SetType, UserType
from cdc_common.messages.raw import Kind as MessageKind
from tests.support.materializer.history.plain_table import STATIC, CellPlace, Count, DeletedRange, PlainCell, PlainTable
from tests.support.materializer.history.steps import Delete, Op, Write
from tests.support.materializer.history.table_versions import COUNTER, LIST_PATHS
from tests.support.materializer.raw_builder import int_bytes

if TYPE_CHECKING:
    from cassandra_storage.formats.rows.row import ColumnData
    from cassandra_storage.formats.schema.tables import TableMetadata
    from tests.support.materializer.history.plain_table import Clustering

KEYS = tuple(int_bytes(number) for number in range(3))
ROWS = 3  # clusterings in each Cassandra partition
_TEXTS = (b"v", b"w")
_GLOBAL_SHARD = b"\x00\x01\x80\x00"  # the header of a counter context with one element, which is global

Effect = Callable[[PlainTable], None]


class Stamp(NamedTuple):
    """A statement's timestamp (µs), the coordinator's second, and the host that is the leader of its counters."""

    timestamp: int
    second: int
    host: int

    @property
    def deletion(self) -> DeletionTime:
        return DeletionTime(self.timestamp, self.second)


class Statement(NamedTuple):
    """`columns`: those that it writes. `effects`: what the plain model gets."""

    kind: MessageKind
    content: object
    effects: list[Effect]
    columns: frozenset[str] = frozenset()


class Statements:
    """Makes the statements of one table, whose schema is given with each.

    No counter is incremented after it was deleted: what Cassandra makes of that depends on the order of arrival and on
    compactions (Cells.resolveCounter).
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[CellPlace, int], Count] = {}
        self._deleted_counters: list[Callable[[CellPlace], bool]] = []

    def write(self, table: TableMetadata, step: Write, stamp: Stamp) -> Statement | None:
        """None if nothing is left to write."""
        partition_key, is_static = KEYS[step.p], step.c is None and bool(table.static_columns)
        clustering: Clustering | None = STATIC if is_static else clustering_of(table, step.c or 0)
        is_insert = (step.is_insert or not step.ops) and not is_static and not table.is_counter
        ttl = 0 if table.is_counter else step.ttl
        data: dict[str, ColumnData] = {}
        effects: list[Effect] = []
        columns = table.static_columns if is_static else table.regular_columns
        for op in step.ops or (() if is_insert else (Op(0),)):
            column = columns[op.column % len(columns)]
            if column.name not in data:
                place = CellPlace(partition_key, clustering, column.name)
                written = _Column(column, place, stamp, ttl, effects)
                found = self._counter(written, op) if column.type == COUNTER else written.data(op)
                if found is not None:
                    data[column.name] = found
        if not data and not is_insert:
            return None
        liveness = NO_LIVENESS
        if is_insert:
            assert clustering is not None
            expires = stamp.second + ttl if ttl else 0
            liveness = LivenessInfo(stamp.timestamp, ttl, expires) if ttl else LivenessInfo(stamp.timestamp)
            effects.append(lambda plain: plain.insert(partition_key, clustering, stamp.timestamp, ttl, expires))
        return Statement(
            "static" if is_static else "row", Row(clustering or (), data, liveness), effects, frozenset(data)
        )

    def delete(self, table: TableMetadata, step: Delete, stamp: Stamp) -> Statement:
        partition_key, timestamp = KEYS[step.p], stamp.timestamp
        what = "row" if step.what == "range" and not table.clustering else step.what
        if what == "partition":
            self._deleted_counters.append(lambda place: place.partition_key == partition_key)
            return Statement(
                "partition_deletion",
                stamp.deletion,
                [lambda plain: plain.delete_partition(partition_key, timestamp)],
            )
        if what == "row":
            clustering = clustering_of(table, step.c)
            self._deleted_counters.append(lambda place: place[:2] == (partition_key, clustering))
            row = Row(clustering, {}, NO_LIVENESS, RowDeletion(stamp.deletion))
            return Statement("row", row, [lambda plain: plain.delete_row(partition_key, clustering, timestamp)])
        first, end = step.c, step.c + step.width

        def covers(clustering: Clustering) -> bool:
            return first <= int.from_bytes(clustering[0] or b"", "big", signed=True) < end

        self._deleted_counters.append(
            lambda place: (
                place.partition_key == partition_key and place.clustering is not None and covers(place.clustering)
            )
        )
        low, high = (int_bytes(first),), (int_bytes(end),)
        if table.clustering[0].is_reversed:
            bounds = ClusteringBound(Kind.EXCL_START_BOUND, high), ClusteringBound(Kind.INCL_END_BOUND, low)
        else:
            bounds = ClusteringBound(Kind.INCL_START_BOUND, low), ClusteringBound(Kind.EXCL_END_BOUND, high)
        deleted = DeletedRange(partition_key, covers, timestamp)
        return Statement(
            "range_deletion",
            RangeTombstone(*bounds, stamp.deletion),
            [lambda plain: plain.deleted_ranges.append(deleted)],
        )

    def _counter(self, written: _Column, op: Op) -> Cell | None:
        place, stamp, effects = written.place, written.stamp, written.effects
        if op.what != "set":
            self._deleted_counters.append(lambda candidate: candidate == place)
            return written.remove(None)
        if any(is_deleted(place) for is_deleted in self._deleted_counters):
            return None
        former = self._counts.get((place, stamp.host), Count(0, 0, 0))
        count = Count(former.clock + 1, former.value + (1, -2)[op.value], stamp.timestamp)
        self._counts[place, stamp.host] = count
        effects.append(lambda plain: plain.count(place, stamp.host, count))
        shard = b"%016d" % stamp.host + count.clock.to_bytes(8, "big") + count.value.to_bytes(8, "big", signed=True)
        return Cell(stamp.timestamp, _GLOBAL_SHARD + shard)


class _Column(NamedTuple):
    """One column of a statement."""

    column: ColumnMetadata
    place: CellPlace
    stamp: Stamp
    ttl: int
    effects: list[Effect]

    def data(self, op: Op) -> ColumnData:
        paths = _paths(self.column)
        if not paths:
            return self.put(None, op.value) if op.what in ("set", "replace") else self.remove(None)
        path = paths[op.element % len(paths)]
        if op.what == "set":
            return ComplexColumnData(LIVE, (self.put(path, op.value),))
        if op.what == "remove":
            return ComplexColumnData(LIVE, (self.remove(path),))
        # What replaces a collection deletes what was there a microsecond before.
        cells = (self.put(path, op.value),) if op.what == "replace" else ()
        deletion = self.stamp.deletion._replace(marked_for_delete_at=self.stamp.timestamp - len(cells))
        self.effects.append(partial(_delete_column, self.place, deletion.marked_for_delete_at))
        return ComplexColumnData(deletion, cells)

    def put(self, path: bytes | None, value: int) -> Cell:
        text = _TEXTS[value]
        if isinstance(self.column.type, SetType):
            text = b""
        elif isinstance(self.column.type, UserType) and path is None:
            text = b"\x00\x00\x00\x01" + text  # frozen: its first field
        timestamp, second, _ = self.stamp
        expires = second + self.ttl if self.ttl else 0
        self.effects.append(
            partial(_put, self.place._replace(path=path), PlainCell(timestamp, text, self.ttl, expires))
        )
        return Cell(timestamp, text, expires, self.ttl, path) if self.ttl else Cell(timestamp, text, path=path)

    def remove(self, path: bytes | None) -> Cell:
        timestamp, second, _ = self.stamp
        self.effects.append(partial(_put, self.place._replace(path=path), PlainCell(timestamp, None)))
        return Cell(timestamp, b"", second, path=path)


def clustering_of(table: TableMetadata, c: int) -> Clustering:
    return (int_bytes(c),) if table.clustering else ()


def _put(place: CellPlace, cell: PlainCell, plain: PlainTable) -> None:
    plain.put(place, cell)


def _delete_column(place: CellPlace, timestamp: int, plain: PlainTable) -> None:
    plain.delete_column(place, timestamp)


def _paths(column: ColumnMetadata) -> tuple[bytes, ...]:
    """The paths of the elements that histories use; none of a simple column."""
    if not column.is_complex:
        return ()
    match column.type:
        case ListType():
            return LIST_PATHS
        case MapType():
            return tuple(int_bytes(number) for number in (-1, 0, 1))
        case SetType():
            return (b"p", b"q", b"r")
        case UserType():
            return tuple(number.to_bytes(2, "big") for number in range(len(column.type.field_names)))
    raise AssertionError(column)
