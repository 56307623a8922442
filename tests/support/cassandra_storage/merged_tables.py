"""Random SSTables in memory and, by the plainest rules, what a merge of them gives."""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from uuid import UUID

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.merge.purge import Purger
from cassandra_storage.formats.merge.reconciliation import RowMerger
from cassandra_storage.formats.primitives.murmur3 import token
from cassandra_storage.formats.primitives.token_ranges import MINIMUM
from cassandra_storage.formats.rows.clustering import ClusteringBound, Kind
from cassandra_storage.formats.rows.deletion import (
    LIVE,
    NO_DELETION_TIME,
    NO_LIVENESS,
    NO_ROW_DELETION,
    DeletionTime,
    LivenessInfo,
    RowDeletion,
)
from cassandra_storage.formats.rows.row import Cell, ColumnData, ComplexColumnData, Row
from cassandra_storage.formats.rows.unfiltered import Marker, Unfiltered
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.sstable.merge import MergePosition
from cassandra_storage.formats.sstable.reader import Partition
from cassandra_storage.formats.types.counter import Shard, ShardKind, shards
from cassandra_storage.formats.types.marshal import MapType, NativeType

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Iterator

    from cassandra_storage.formats.rows.clustering import Clustering

INT, TEXT = NativeType("int"), NativeType("text")
NOW, SECONDS = 100, range(80, 120)
_ENDLESS = float("inf")
_LETTERS = "abc"


def _table(name: str, *columns: ColumnMetadata) -> TableMetadata:
    def of(kind: ColumnKind) -> tuple[ColumnMetadata, ...]:
        return tuple(column for column in columns if column.kind is kind)

    key = (ColumnMetadata("p", INT, ColumnKind.PARTITION_KEY, 0),)
    kinds = of(ColumnKind.CLUSTERING), of(ColumnKind.STATIC), of(ColumnKind.REGULAR)
    return TableMetadata("k", name, UUID(int=len(name)), key, *kinds)


_C = ColumnMetadata("c", INT, ColumnKind.CLUSTERING, 0)
_D = ColumnMetadata("d", TEXT, ColumnKind.CLUSTERING, 1, is_reversed=True)
_COUNTER = NativeType("counter")
WIDE = _table(
    "wide",
    _C,
    _D,
    ColumnMetadata("s", TEXT, ColumnKind.STATIC),
    ColumnMetadata("v", TEXT, ColumnKind.REGULAR),
    ColumnMetadata("m", MapType(INT, TEXT, is_multi_cell=True), ColumnKind.REGULAR),
)
NARROW = _table("narrow", ColumnMetadata("v", TEXT, ColumnKind.REGULAR))
COUNTERS = replace(
    _table(
        "counters",
        _C,
        ColumnMetadata("s", _COUNTER, ColumnKind.STATIC),
        ColumnMetadata("v", _COUNTER, ColumnKind.REGULAR),
    ),
    flags=frozenset({"compound", "counter"}),
)
TABLES = (WIDE, NARROW, COUNTERS)

Order: TypeAlias = "tuple[float, ...]"
Range: TypeAlias = "tuple[Order, Order, DeletionTime]"


class MemorySource:
    """A sstable_merge.MergeInput."""

    def __init__(self, content: list[tuple[Partition, list[Unfiltered]]], first_token: int = MINIMUM) -> None:
        self.content = content
        self.first_token = first_token
        self._rows: Iterator[Unfiltered] = iter(())

    def partitions(self) -> Iterator[tuple[int, Partition]]:
        for partition, unfiltereds in self.content:
            self._rows = iter(unfiltereds)
            yield token(partition.key), partition

    def rows(self) -> Iterator[Unfiltered]:
        yield from self._rows

    def error(self, reason: str) -> FormatError:
        return FormatError(reason, position=1, segment="memory")


class Purge(NamedTuple):
    """The arguments of a Purger."""

    gc_grace_seconds: int = 1000
    oldest_unrepaired: int | None = None
    before: int = 2**63

    def purger(self, make: Callable[..., Purger] = Purger) -> Purger:
        return make(NOW, self.gc_grace_seconds, oldest_unrepaired=self.oldest_unrepaired, before=self.before)

    def purges(self, timestamp: int, seconds: int) -> bool:
        is_old = NOW - seconds > self.gc_grace_seconds
        may_be = self.oldest_unrepaired is None or seconds < self.oldest_unrepaired
        return is_old and may_be and timestamp < self.before


class Case(NamedTuple):
    table: TableMetadata
    sources: list[list[tuple[Partition, list[Unfiltered]]]]
    purge: Purge

    def memory(self) -> list[MemorySource]:
        return [
            MemorySource(content, token(content[0][0].key) if content and index % 2 else MINIMUM)
            for index, content in enumerate(self.sources)
        ]


class Expected(NamedTuple):
    """A merged partition; `ranges` in the order of `order`."""

    key: bytes
    deletion: DeletionTime
    static_row: Row | None
    rows: list[Row]
    ranges: list[Range]


def order(values: Clustering, kind: Kind = Kind.CLUSTERING) -> Order:
    """Return the place of a clustering or bound of WIDE or COUNTERS in the order: `d` is in reversed order."""
    numbers = [float(int.from_bytes(values[0] or b"", "big", signed=True))] if values else []
    numbers += [-float(ord(value or b"")) for value in values[1:]]
    if kind is Kind.CLUSTERING:
        return (*numbers, 0)
    return (*numbers, -_ENDLESS if kind in (Kind.INCL_START_BOUND, Kind.EXCL_END_BOUND) else _ENDLESS)


class CaseMaker:
    """Cases of a few keys, clusterings, timestamps and times, so that much meets."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def case(self) -> Case:
        rng = self._rng
        table = rng.choice(TABLES)
        purge = Purge(
            rng.choice((0, 1, 10, 1000)), rng.choice((None, None, 90, 110)), rng.choice((2**63, 2**63, 4, -(2**63)))
        )
        keys = sorted((key.to_bytes(4, "big") for key in range(rng.randint(1, 3))), key=lambda key: (token(key), key))
        sources = [
            [self._partition(table, key) for key in keys if rng.random() < 0.8] for _ in range(rng.randint(1, 4))
        ]
        return Case(table, sources, purge)

    def _partition(self, table: TableMetadata, key: bytes) -> tuple[Partition, list[Unfiltered]]:
        rng = self._rng
        deletion = self._deletion() if rng.random() < 0.25 else LIVE
        static = self._row(table, (), is_static=True) if table.static_columns and rng.random() < 0.5 else None
        merger = RowMerger({column.name: column for column in table.columns}, is_counter=False)
        static = static and merger.merge((static,))
        rows = [merger.merge((self._row(table, one),)) for one in self._clusterings(table)]
        unfiltereds: list[Unfiltered] = [row for row in rows if not row.is_empty]
        if table.clustering:
            unfiltereds = sorted([*unfiltereds, *self._markers(table)], key=order_of)
        return Partition(0, key, deletion, static if static and not static.is_empty else None), unfiltereds

    def _clusterings(self, table: TableMetadata) -> set[Clustering]:
        rng = self._rng
        if not table.clustering:
            return {()} if rng.random() < 0.8 else set()
        return {self.values(table, len(table.clustering)) for _ in range(rng.randint(0, 6))}

    def values(self, table: TableMetadata, count: int) -> Clustering:
        """Values for the first `count` clustering columns."""
        values = self._rng.randint(-2, 2).to_bytes(4, "big", signed=True), self._rng.choice(_LETTERS).encode()
        return values[: min(count, len(table.clustering))]

    def _markers(self, table: TableMetadata) -> list[Marker]:
        """Return markers with a deletion or none between neighbours of some places."""
        rng = self._rng
        places: dict[Order, Clustering] = {}
        for _ in range(rng.choice((0, 0, 2, 3, 5))):
            values = self.values(table, rng.randint(0, len(table.clustering)))
            kind = rng.choice((Kind.INCL_START_BOUND, Kind.EXCL_START_BOUND))
            places[order(values, kind)] = values
        markers = []
        before: DeletionTime | None = None
        for number, place in enumerate(sorted(places)):
            after = self._deletion() if number < len(places) - 1 and rng.random() < 0.8 else None
            if before != after:
                markers.append(marker_at(place, places[place], before, after))
            before = after
        return markers

    def _row(self, table: TableMetadata, clustering: Clustering, *, is_static: bool = False) -> Row:
        rng = self._rng
        columns: dict[str, ColumnData] = {}
        for column in table.static_columns if is_static else table.regular_columns:
            if rng.random() < 0.7:
                columns[column.name] = self._complex() if column.is_complex else self._cell(table)
        liveness = NO_LIVENESS
        if not is_static and not table.is_counter and rng.random() < 0.5:
            timestamp, ttl, seconds = self._timestamp(), rng.randint(1, 30), rng.choice(SECONDS)
            liveness = rng.choice((LivenessInfo(timestamp), LivenessInfo(timestamp, ttl, seconds)))
        deletion = NO_ROW_DELETION
        if not is_static and rng.random() < 0.2:
            deletion = RowDeletion(self._deletion())
        return Row(clustering, columns, liveness, deletion)

    def _complex(self) -> ComplexColumnData:
        rng = self._rng
        paths = sorted({rng.randint(0, 3) for _ in range(rng.randint(1, 3))})
        cells = tuple(self._cell(WIDE)._replace(path=path.to_bytes(4, "big")) for path in paths)
        return ComplexColumnData(self._deletion() if rng.random() < 0.3 else LIVE, cells)

    def _cell(self, table: TableMetadata) -> Cell:
        rng = self._rng
        timestamp, seconds = self._timestamp(), rng.choice(SECONDS)
        if rng.random() < 0.25:
            return Cell(timestamp, b"", seconds)
        if table.is_counter:
            return Cell(timestamp, self._context())
        value = rng.choice((b"", b"x", b"y"))
        return Cell(timestamp, value) if rng.random() < 0.6 else Cell(timestamp, value, seconds, rng.randint(1, 30))

    def _context(self) -> bytes:
        rng = self._rng
        ids = sorted({rng.randint(0, 3) for _ in range(rng.randint(1, 3))})
        return context(
            [
                Shard(bytes((id_,)) * 16, rng.randint(1, 4), rng.randint(1, 4), rng.choice(tuple(ShardKind)))
                for id_ in ids
            ]
        )

    def _deletion(self) -> DeletionTime:
        return DeletionTime(self._timestamp(), self._rng.choice(SECONDS))

    def _timestamp(self) -> int:
        return self._rng.randint(0, 8)


def context(of: Iterable[Shard]) -> bytes:
    """CounterContext with those shards."""
    of = list(of)
    header = [
        index - 2**15 if shard.kind is ShardKind.GLOBAL else index
        for index, shard in enumerate(of)
        if shard.kind is not ShardKind.REMOTE
    ]
    body = b"".join(struct.pack(">16sqq", shard.id, shard.clock, shard.value) for shard in of)
    return struct.pack(f">h{len(header)}h", len(header), *header) + body


def marker_at(place: Order, values: Clustering, before: DeletionTime | None, after: DeletionTime | None) -> Marker:
    is_before = place[-1] < 0
    end = ClusteringBound(Kind.EXCL_END_BOUND if is_before else Kind.INCL_END_BOUND, values)
    start = ClusteringBound(Kind.INCL_START_BOUND if is_before else Kind.EXCL_START_BOUND, values)
    return Marker(None if before is None else (end, before), None if after is None else (start, after))


def order_of(one: Unfiltered) -> Order:
    if isinstance(one, Row):
        return order(one.clustering)
    end = one.close or one.open_
    assert end is not None
    return order(end[0].values, end[0].kind)


def expected(case: Case) -> list[Expected]:
    """The merge of all, by rules that look at everything at once."""
    keys = {partition.key for content in case.sources for partition, _ in content}
    merged = [_partition(case, key) for key in sorted(keys, key=lambda key: (token(key), key))]
    return [
        partition
        for partition in merged
        if partition.rows or partition.ranges or partition.static_row or partition.deletion != LIVE
    ]


def _partition(case: Case, key: bytes) -> Expected:
    table = case.table
    found = [
        (partition, unfiltereds)
        for content in case.sources
        for partition, unfiltereds in content
        if partition.key == key
    ]
    deletion = _largest(partition.deletion for partition, _ in found)
    merger = RowMerger({column.name: column for column in table.columns}, is_counter=table.is_counter)
    statics = [partition.static_row for partition, _ in found if partition.static_row is not None]
    ranges = [range_ for _, unfiltereds in found for range_ in _ranges(unfiltereds)]
    rows: dict[Clustering, list[Row]] = {}
    for _, unfiltereds in found:
        for one in unfiltereds:
            if isinstance(one, Row):
                rows.setdefault(one.clustering, []).append(one)
    merged = []
    for clustering in sorted(rows, key=order):
        covering = [of_range for start, end, of_range in ranges if start < order(clustering) < end]
        merged.append(_purged(case, merger.merge(rows[clustering], _largest([deletion, *covering]))))
    static = _purged(case, merger.merge(statics, deletion)) if statics else None
    return Expected(
        key,
        LIVE if deletion != LIVE and case.purge.purges(*deletion) else deletion,
        static if static and not static.is_empty else None,
        [row for row in merged if not row.is_empty],
        _merged_ranges(case, deletion, ranges),
    )


def place_in(case: Case, whole: list[Expected], rng: random.Random) -> MergePosition:
    """Return a place at one of the partitions, or at any clustering in it."""
    key = rng.choice(whole).key
    place = MergePosition(token(key), key)
    if not case.table.clustering or rng.random() < 0.2:
        return place
    return place._replace(clustering=CaseMaker(rng).values(case.table, len(case.table.clustering)))


def after(whole: list[Expected], place: MergePosition) -> list[Expected]:
    """Return what comes after the place. Ranges do if they end there, with their own starts."""
    found = []
    for one in whole:
        here = (token(one.key), one.key)
        left = one
        if place.clustering is not None and here == place[:2]:
            at = order(place.clustering)
            rows = [row for row in one.rows if order(row.clustering) > at]
            left = one._replace(rows=rows, ranges=[range_ for range_ in one.ranges if range_[1] > at])
        elif here <= place[:2]:
            continue
        if left.rows or left.ranges or left.static_row or left.deletion != LIVE:
            found.append(left)
    return found


def _largest(deletions: Iterable[DeletionTime]) -> DeletionTime:
    largest = LIVE
    for one in deletions:
        if one.supersedes(largest):
            largest = one
    return largest


def _ranges(unfiltereds: list[Unfiltered]) -> Iterator[Range]:
    markers = [one for one in unfiltereds if isinstance(one, Marker)]
    for left, right in pairwise(markers):
        if left.open_ is not None:
            yield order_of(left), order_of(right), left.open_[1]


def _merged_ranges(case: Case, partition: DeletionTime, ranges: list[Range]) -> list[Range]:
    found: list[Range] = []
    for start, end in pairwise(sorted({place for range_ in ranges for place in range_[:2]})):
        largest = _largest(of_range for first, last, of_range in ranges if first <= start and end <= last)
        if not largest.supersedes(partition) or case.purge.purges(*largest):
            continue
        if found and found[-1][1:] == (start, largest):
            found[-1] = (found[-1][0], end, largest)
        else:
            found.append((start, end, largest))
    return found


def _purged(case: Case, row: Row) -> Row:
    purge = case.purge
    liveness, deletion = row.liveness, row.deletion
    if liveness.ttl and liveness.local_expiration_time <= NOW and purge.purges(liveness.timestamp, liveness[2]):
        liveness = NO_LIVENESS
    if deletion != NO_ROW_DELETION and purge.purges(*deletion.time):
        deletion = NO_ROW_DELETION
    columns: dict[str, ColumnData] = {}
    for name, data in row.columns.items():
        if isinstance(data, Cell):
            cell = _purged_cell(case, data)
            if cell is not None:
                columns[name] = cell
            continue
        cells = tuple(cell for cell in (_purged_cell(case, whole) for whole in data.cells) if cell is not None)
        of_column = LIVE if data.deletion != LIVE and purge.purges(*data.deletion) else data.deletion
        if cells or of_column != LIVE:
            columns[name] = ComplexColumnData(of_column, cells)
    return Row(row.clustering, columns, liveness, deletion)


def _purged_cell(case: Case, cell: Cell) -> Cell | None:
    if cell.local_deletion_time == NO_DELETION_TIME:
        return _remote(cell) if case.table.is_counter else cell
    is_expiring = cell.ttl and cell.local_deletion_time > NOW
    return cell if is_expiring else _purged_tombstone(case, cell)


def _remote(cell: Cell) -> Cell:
    remote = [
        shard._replace(kind=ShardKind.REMOTE) if shard.kind is ShardKind.LOCAL else shard
        for shard in shards(cell.value)
    ]
    return cell._replace(value=context(remote))


def _purged_tombstone(case: Case, cell: Cell) -> Cell | None:
    """Return what a purge leaves of a tombstone or of a cell that has expired."""
    purges = case.purge.purges
    if purges(cell.timestamp, cell.local_deletion_time):
        return None
    if not cell.ttl:
        return cell
    written = cell.local_deletion_time - cell.ttl
    is_unrepaired = (
        case.purge.oldest_unrepaired is not None and cell.local_deletion_time >= case.purge.oldest_unrepaired
    )
    if purges(cell.timestamp, written) and not is_unrepaired:
        return None
    return Cell(cell.timestamp, b"", written, path=cell.path)
