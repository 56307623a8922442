"""One merge of several SSTables of a table: partitions by token and key, rows and markers by clustering
(org.apache.cassandra.db.partitions.UnfilteredPartitionIterators.merge, db.rows.UnfilteredRowIterators.merge,
db.compaction.CompactionIterator).

One row of each input is in memory, however wide a partition is. Shadowed data are left out, and the range tombstones
of all inputs become one series. What the Purger considers purgeable still shadows other data, and is then left out.
The reader leaves out cells that the drop of their column covers (ColumnLayout.dropped_time).
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.merge.range_merge import RangeMerger
from cassandra_storage.formats.merge.reconciliation import RowMerger
from cassandra_storage.formats.rows.byte_comparable import bound_encoder, clustering_encoder
from cassandra_storage.formats.rows.clustering import Clustering
from cassandra_storage.formats.rows.deletion import LIVE, DeletionTime
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.rows.unfiltered import Marker, Unfiltered
from cassandra_storage.formats.types.counter import without_local

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_storage.formats.merge.purge import Purger
    from cassandra_storage.formats.schema.tables import TableMetadata
    from cassandra_storage.formats.sstable.reader import Partition


class MergeInput(Protocol):
    """An SSTable, or a part of one. `first_token`: none of its partitions has a token below it; the input is not asked
    for anything before the merge has come so far.
    """

    first_token: int

    def partitions(self) -> Iterator[tuple[int, Partition]]:
        """Yields partitions with their tokens, by token, then key. Rows of a partition that `rows` has not yielded are
        skipped.
        """
        ...

    def rows(self) -> Iterator[Unfiltered]:
        """The rows and markers of the partition that came last, in clustering order."""
        ...

    def error(self, reason: str) -> Exception:
        """Damage at the place that was read last. What `partitions` and `rows` raise says its place itself."""
        ...


_InputMarker: TypeAlias = "tuple[int, MergeInput, Marker]"


class MergePosition(NamedTuple):
    """The place that a merge has reached."""

    # The token of the Cassandra partition.
    token: int
    # The serialized partition key.
    key: bytes
    # The clustering of the last row that was merged; None after the whole Cassandra partition.
    clustering: Clustering | None = None


class MergedPartition(NamedTuple):
    """A Cassandra partition that is not empty."""

    # The token of the partition key.
    token: int
    # The serialized partition key.
    key: bytes
    # The deletion of the whole Cassandra partition.
    deletion: DeletionTime
    # The static row; None if there is none.
    static_row: Row | None
    # The rows and markers. They are read from the inputs, and only before the next Cassandra partition.
    unfiltereds: Iterator[Unfiltered]


def merge_inputs(
    table: TableMetadata, inputs: Sequence[MergeInput], purger: Purger, after: MergePosition | None = None
) -> Iterator[MergedPartition]:
    """The merged partitions, by token and key; those after `after`, and of the partition that it lies in the rows after
    it, with the partition's deletion and static row.

    A range tombstone that is open at `after` is given with its own start: whoever was stopped there has not had it, as
    ranges are complete only where they end. Raises an input's error if it is out of order.
    """
    return _Merge(table, inputs, purger).partitions(after)


class _Merge:
    def __init__(self, table: TableMetadata, inputs: Sequence[MergeInput], purger: Purger) -> None:
        columns = {name: dropped.column for name, dropped in table.dropped_columns.items()}
        columns |= {column.name: column for column in table.columns}
        self._rows = RowMerger(columns, is_counter=table.is_counter)
        self._is_counter = table.is_counter
        self._clustering_key = clustering_encoder(table.clustering)
        self._bound_key = bound_encoder(table.clustering)
        self._inputs = inputs
        self._purger = purger

    def partitions(self, after: MergePosition | None) -> Iterator[MergedPartition]:
        for token, key, group in self._groups():
            if after is None or (token, key) > after[:2]:
                merged = self._merged(token, key, group)
            elif (token, key) == after[:2] and after.clustering is not None:
                merged = self._merged(token, key, group, after.clustering)
            else:
                continue
            if merged is not None:
                yield merged

    def _groups(self) -> Iterator[tuple[int, bytes, list[tuple[MergeInput, Partition]]]]:
        """The partitions of one key that lie in several inputs, in the order of the inputs."""
        streams: dict[int, Iterator[tuple[int, Partition]]] = {}
        heads: list[Partition | None] = [None] * len(self._inputs)
        heap = [(sstable.first_token, b"", False, index) for index, sstable in enumerate(self._inputs)]
        heapify(heap)
        while heap:
            token, key, is_asked, index = heappop(heap)
            indexes = [index]
            before = (token, key)
            if is_asked:
                while heap and heap[0][:3] == (token, key, True):
                    indexes.append(heappop(heap)[3])
                yield token, key, [(self._inputs[number], head) for number in indexes if (head := heads[number])]
            else:
                streams[index] = self._inputs[index].partitions()
            for number in indexes:
                following = next(streams[number], None)
                if following is None:
                    continue
                token, heads[number] = following
                place = (token, following[1].key)
                if place < before or (place == before and is_asked):
                    raise self._inputs[number].error("a partition that is out of order")
                heappush(heap, (*place, True, number))

    def _merged(
        self, token: int, key: bytes, group: list[tuple[MergeInput, Partition]], after: Clustering | None = None
    ) -> MergedPartition | None:
        """None if nothing is left of it."""
        deletion, statics = LIVE, []
        for _, partition in group:
            if partition.deletion.supersedes(deletion):
                deletion = partition.deletion
            if partition.static_row is not None:
                statics.append(partition.static_row)
        inputs = [sstable for sstable, _ in group]
        try:
            static_row = self._merged_row(statics, deletion) if statics else None
        except FormatError as error:
            raise _located(error, inputs) from None
        unfiltereds = self._purged(inputs, deletion)
        if after is not None:
            unfiltereds = self._after(unfiltereds, after)
        deletion = self._purger.deletion(deletion)
        if static_row is None and deletion.is_live:
            first = next(unfiltereds, None)
            if first is None:
                return None
            unfiltereds = _chained(first, unfiltereds)
        return MergedPartition(token, key, deletion, static_row, unfiltereds)

    def _merged_row(self, versions: list[Row], active: DeletionTime) -> Row | None:
        """Row.Merger.merge, then purge, then clear; None if nothing is left."""
        row = versions[0]
        if len(versions) > 1 or active is not LIVE:
            row = self._rows.merge(versions, active)
        row = self._purger.row(row)
        if row.is_empty:
            return None
        return _without_local_shards(row) if self._is_counter else row

    def _single(self, sstable: MergeInput, deletion: DeletionTime) -> Iterator[Unfiltered]:
        """The content of a partition that only one input has, merged and not purged."""
        ranges = RangeMerger(deletion)
        for one in sstable.rows():
            if isinstance(one, Row):
                yield one if ranges.active is LIVE else self._rows.merge((one,), ranges.active)
            else:
                yield from self._marker(ranges, [(0, sstable, one)])
        self._end(ranges, sstable)

    def _several(self, inputs: list[MergeInput], deletion: DeletionTime) -> Iterator[Unfiltered]:
        """The content of a partition that several inputs have, merged and not purged."""
        ranges = RangeMerger(deletion)
        for rows, markers in self._places(inputs):
            if markers:
                yield from self._marker(ranges, markers)
            elif len(rows) == 1 and ranges.active is LIVE:
                yield rows[0]
            else:
                yield self._rows.merge(rows, ranges.active)
        for sstable in inputs:
            self._end(ranges, sstable)

    def _places(self, inputs: list[MergeInput]) -> Iterator[tuple[list[Row], list[_InputMarker]]]:
        """Yield the rows or markers that the inputs have at each clustering or bound."""
        streams = [sstable.rows() for sstable in inputs]
        heap: list[tuple[bytes, int, Unfiltered]] = []
        for index, stream in enumerate(streams):
            first = next(stream, None)
            if first is not None:
                heap.append((self._key(first), index, first))
        heapify(heap)
        while heap:
            key = heap[0][0]
            rows: list[Row] = []
            markers: list[_InputMarker] = []
            while heap and heap[0][0] == key:
                _, index, one = heap[0]
                if isinstance(one, Row):
                    rows.append(one)
                else:
                    markers.append((index, inputs[index], one))
                following = next(streams[index], None)
                if following is None:
                    heappop(heap)
                    continue
                following_key = self._key(following)
                if following_key < key:
                    raise inputs[index].error("a row or range tombstone that is out of order")
                heapreplace(heap, (following_key, index, following))
            yield rows, markers

    def _key(self, one: Unfiltered) -> bytes:
        if isinstance(one, Row):
            return self._clustering_key(one.clustering)
        end = one.open_ or one.close
        assert end is not None
        return self._bound_key(end[0])

    @staticmethod
    def _marker(ranges: RangeMerger, markers: list[_InputMarker]) -> Iterator[Marker]:
        for index, sstable, marker in markers:
            try:
                ranges.add(index, marker)
            except FormatError as error:
                raise sstable.error(error.reason) from None
        merged = ranges.merged()
        if merged is not None:
            yield merged

    @staticmethod
    def _end(ranges: RangeMerger, sstable: MergeInput) -> None:
        try:
            ranges.end()
        except FormatError as error:
            raise sstable.error(error.reason) from None

    def _purged(self, inputs: list[MergeInput], deletion: DeletionTime) -> Iterator[Unfiltered]:
        purger, is_counter = self._purger, self._is_counter
        merged = self._single(inputs[0], deletion) if len(inputs) == 1 else self._several(inputs, deletion)
        try:
            for one in merged:
                if isinstance(one, Row):
                    row = purger.row(one)
                    if not row.is_empty:
                        yield _without_local_shards(row) if is_counter else row
                else:
                    marker = purger.marker(one)
                    if marker is not None:
                        yield marker
        except FormatError as error:
            raise _located(error, inputs) from None

    def _after(self, unfiltereds: Iterator[Unfiltered], clustering: Clustering) -> Iterator[Unfiltered]:
        """Yield what comes after that clustering, and before it the start of the range that is open there."""
        done = self._clustering_key(clustering)
        opened: Marker | None = None
        for one in unfiltereds:
            if self._key(one) > done:
                if opened is not None:
                    yield opened
                yield one
                yield from unfiltereds
                return
            if isinstance(one, Marker):
                opened = None if one.open_ is None else Marker(None, one.open_)


def _located(error: FormatError, inputs: list[MergeInput]) -> Exception:
    """The error of values that cannot be merged, which may lie in any of the inputs."""
    if error.segment is not None:
        return error
    where = "" if len(inputs) == 1 else f"in this or another of {len(inputs)} SSTables with the partition: "
    return inputs[0].error(where + error.reason)


def _chained(first: Unfiltered, others: Iterator[Unfiltered]) -> Iterator[Unfiltered]:
    yield first
    yield from others


def _without_local_shards(row: Row) -> Row:
    """Row.markCounterLocalToBeCleared, and what its reader does then (CassandraStreamReader): local shards are added
    when they meet, so that a row that comes twice would count twice.
    """
    columns = {
        name: data._replace(value=without_local(data.value)) if isinstance(data, Cell) and data.value else data
        for name, data in row.columns.items()
    }
    return row._replace(columns=columns)
