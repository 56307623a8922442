"""One table as `SELECT` shows it: a dictionary of its newest cells, by Cassandra's rules.

It calls nothing of the materializer and nothing of its merging: no states, no purges, no schema versions. Nothing is
ever deleted here; tombstones and the times of dropped columns are compared with each cell when a row is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

Value: TypeAlias = bytes | tuple[tuple[bytes, bytes], ...]
Image: TypeAlias = dict[str, Value]
Clustering: TypeAlias = tuple[bytes | None, ...]
STATIC = None  # instead of a clustering: the static row, and the row of a partition that has only statics
NEVER = -(2**63)

# How the paths of a column's elements are ordered; None for a simple column.
PathOrder: TypeAlias = Callable[[bytes], Any] | None


class PlainCell(NamedTuple):
    """`value` None: a tombstone. `ttl` in s, 0 without; `expires` in s since the epoch. `timestamp` in µs."""

    timestamp: int
    value: bytes | None
    ttl: int = 0
    expires: int = 0

    @property
    def rank(self) -> tuple[Any, ...]:
        """The cell of the higher rank stays of two in one place (org.apache.cassandra.db.rows.Cells)."""
        is_tombstone = self.value is None
        return (self.timestamp, is_tombstone or self.ttl > 0, is_tombstone, self.expires, -self.ttl, self.value or b"")

    def is_live(self, now: int) -> bool:
        return self.value is not None and (not self.ttl or now < self.expires)


class CellPlace(NamedTuple):
    """The place of a cell; `path` None in a simple column, `clustering` STATIC in the static row."""

    partition_key: bytes
    clustering: Clustering | None
    column: str
    path: bytes | None = None


class Count(NamedTuple):
    """The part of a counter that one node has counted."""

    clock: int
    value: int
    timestamp: int


class DeletedRange(NamedTuple):
    partition_key: bytes
    covers: Callable[[Clustering], bool]
    timestamp: int


def list_order(path: bytes) -> int:
    """The order of a list's elements. SELECT does not show their paths."""
    return UUID(bytes=path).time


class PlainTable:
    """Add everything that is written, in any order; then ask for `rows`."""

    def __init__(self) -> None:
        self.cells: dict[CellPlace, PlainCell] = {}
        self.counts: dict[CellPlace, dict[int, Count]] = {}
        self.inserts: dict[tuple[bytes, Clustering], PlainCell] = {}
        self.deleted_partitions: dict[bytes, int] = {}
        self.deleted_rows: dict[tuple[bytes, Clustering], int] = {}
        self.deleted_columns: dict[CellPlace, int] = {}
        self.deleted_ranges: list[DeletedRange] = []
        self.expiry_seconds: set[int] = set()

    def put(self, place: CellPlace, cell: PlainCell) -> None:
        present = self.cells.get(place)
        self.cells[place] = cell if present is None else max(present, cell, key=lambda candidate: candidate.rank)
        if cell.ttl:
            self.expiry_seconds.add(cell.expires)

    def insert(self, partition_key: bytes, clustering: Clustering, timestamp: int, ttl: int, expires: int) -> None:
        """INSERT's own trace: the row is there even without a value."""
        mark = PlainCell(timestamp, b"", ttl, expires)
        present = self.inserts.get((partition_key, clustering), mark)
        self.inserts[partition_key, clustering] = max(present, mark, key=lambda candidate: candidate.rank)
        if ttl:
            self.expiry_seconds.add(expires)

    def count(self, place: CellPlace, host: int, count: Count) -> None:
        counts = self.counts.setdefault(place, {})
        counts[host] = max(counts.get(host, count), count)

    def delete_partition(self, partition_key: bytes, timestamp: int) -> None:
        self.deleted_partitions[partition_key] = max(timestamp, self.deleted_partitions.get(partition_key, NEVER))

    def delete_row(self, partition_key: bytes, clustering: Clustering, timestamp: int) -> None:
        row = partition_key, clustering
        self.deleted_rows[row] = max(timestamp, self.deleted_rows.get(row, NEVER))

    def delete_column(self, place: CellPlace, timestamp: int) -> None:
        """All elements of a collection or of a user type."""
        self.deleted_columns[place] = max(timestamp, self.deleted_columns.get(place, NEVER))

    def rows(
        self, partition_key: bytes, now: int, columns: Mapping[str, PathOrder], dropped: Mapping[str, int]
    ) -> dict[Clustering | None, Image]:
        """The rows of a partition at a second, by clustering.

        `columns`: those that the table has now. `dropped`: when any column of the table was dropped last, in µs.
        """
        written = {place.clustering for place in (*self.cells, *self.counts) if place.partition_key == partition_key}
        written |= {clustering for key, clustering in self.inserts if key == partition_key}
        images = {clustering: self._image(partition_key, clustering, now, columns, dropped) for clustering in written}
        statics = images.pop(STATIC, {})
        visible: dict[Clustering | None, Image] = {}
        for clustering, image in images.items():
            assert clustering is not None
            mark = self.inserts.get((partition_key, clustering))
            is_inserted = mark is not None and mark.timestamp > self._deleted(partition_key, clustering)
            if image or (is_inserted and mark is not None and mark.is_live(now)):
                visible[clustering] = {**statics, **image}
        return visible or ({STATIC: statics} if statics else {})

    def _image(
        self,
        partition_key: bytes,
        clustering: Clustering | None,
        now: int,
        columns: Mapping[str, PathOrder],
        dropped: Mapping[str, int],
    ) -> Image:
        deleted = self._deleted(partition_key, clustering)
        image: Image = {}
        for name, order in columns.items():
            column = CellPlace(partition_key, clustering, name)
            until = max(deleted, self.deleted_columns.get(column, NEVER), dropped.get(name, NEVER))
            elements = {
                place.path: cell.value
                for place, cell in self.cells.items()
                if place[:3] == column[:3] and cell.timestamp > until and cell.is_live(now)
            }
            counts = [count.value for count in self.counts.get(column, {}).values() if count.timestamp > until]
            if order is not None and elements:
                pairs = sorted(
                    ((path or b"", value or b"") for path, value in elements.items()), key=lambda pair: order(pair[0])
                )
                image[name] = tuple((b"" if order is list_order else path, value) for path, value in pairs)
            elif counts:
                is_deleted = column in self.cells and self.cells[column].timestamp > until
                if not is_deleted:
                    image[name] = sum(counts).to_bytes(8, "big", signed=True)
            elif elements:
                image[name] = elements[None] or b""
        return image

    def _deleted(self, partition_key: bytes, clustering: Clustering | None) -> int:
        """Everything up to this timestamp is deleted in a row."""
        deleted = self.deleted_partitions.get(partition_key, NEVER)
        if clustering is STATIC:
            return deleted
        ranges = [
            deletion.timestamp
            for deletion in self.deleted_ranges
            if deletion.partition_key == partition_key and deletion.covers(clustering)
        ]
        return max(deleted, self.deleted_rows.get((partition_key, clustering), NEVER), *ranges, NEVER)
