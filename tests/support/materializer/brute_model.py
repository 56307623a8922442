"""A table as `SELECT` shows it, computed each time from the list of all its writes: slow, and without any state.

It follows Cassandra's rules and not the materializer's code: no merging, no byte-comparable keys, no stored images.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cassandra_storage.formats.rows.clustering import Clustering, Kind
from cassandra_storage.formats.rows.deletion import LIVE, NO_DELETION_TIME
from cassandra_storage.formats.rows.row import Cell
from cdc_common.messages import raw
from tests.support.materializer.raw_builder import INT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cassandra_storage.formats.rows.deletion import DeletionTime, RangeTombstone
    from cassandra_storage.formats.rows.row import Row
    from cassandra_storage.formats.schema.tables import ColumnMetadata, TableMetadata

Visible = dict["Clustering | None", dict[str, Any]]


class Write(NamedTuple):
    """One raw message's content."""

    partition_key: bytes
    kind: raw.Kind
    what: Any


class Event(NamedTuple):
    """A change that is expected, or one that came out."""

    partition_key: bytes
    clustering: Clustering | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class BruteModel:
    """Add writes; ask for what is visible at a second."""

    def __init__(self, table: TableMetadata) -> None:
        self.table = table
        self.writes: list[Write] = []

    def visible(self, partition_key: bytes, now: int) -> Visible:
        """The rows of a partition; the key None is the row of a partition that has only statics."""
        of = [write for write in self.writes if write.partition_key == partition_key]
        whole = max((write.what for write in of if write.kind == "partition_deletion"), default=LIVE)
        statics = _columns([write.what for write in of if write.kind == "static"], whole, now)
        rows: Visible = {}
        for clustering in {write.what.clustering for write in of if write.kind == "row"}:
            versions = [write.what for write in of if write.kind == "row" and write.what.clustering == clustering]
            ranges = [write.what for write in of if write.kind == "range_deletion"]
            deletions = [whole, *(row.deletion.time for row in versions)]
            deletions += [deleted.deletion for deleted in ranges if self.covers(deleted, clustering)]
            deletion = max(deletions)
            columns = _columns(versions, deletion, now)
            if columns or _has_liveness(versions, deletion, now):
                rows[clustering] = {**statics, **columns}
        return rows or ({None: statics} if statics else {})

    def expected(self, partition_key: bytes, before: Visible, after: Visible) -> list[Event]:
        """The changes from one picture to another."""
        return [
            Event(partition_key, key, before.get(key), after.get(key))
            for key in {**before, **after}
            if before.get(key) != after.get(key)
        ]

    def ends(self, first: int, last: int) -> list[int]:
        """The seconds in (first, last] at which anything of any write expires."""
        ends = {end for write in self.writes if write.kind in {"row", "static"} for end in _ends(write.what)}
        return sorted(end for end in ends if first < end <= last)

    def covers(self, tombstone: RangeTombstone, clustering: Clustering) -> bool:
        """Is the clustering between the two bounds, in clustering order?"""
        start = self.compare(clustering, tombstone.start.values)
        end = self.compare(clustering, tombstone.end.values)
        return (start > 0 or (start == 0 and tombstone.start.kind is Kind.INCL_START_BOUND)) and (
            end < 0 or (end == 0 and tombstone.end.kind is Kind.INCL_END_BOUND)
        )

    def compare(self, clustering: Clustering, bound: Sequence[bytes | None]) -> int:
        """-1, 0, 1: before the bound's values, starting with them, after them."""
        for column, mine, its in zip(self.table.clustering, clustering, bound, strict=False):
            left, right = _decoded(column, mine), _decoded(column, its)
            if left != right:
                return -1 if (left < right) != column.is_reversed else 1
        return 0


def _decoded(column: ColumnMetadata, value: bytes | None) -> Any:  # noqa: ANN401 - int or str
    assert value is not None
    return int.from_bytes(value, "big", signed=True) if column.type == INT else value.decode()


def _rank(cell: Cell) -> tuple[Any, ...]:
    """Cells.reconcile: of two cells the one of higher rank stands."""
    ends = cell.local_deletion_time != NO_DELETION_TIME
    return (
        cell.timestamp,
        ends,
        ends and cell.ttl == 0,
        cell.local_deletion_time if ends else 0,
        -cell.ttl if ends else 0,
        cell.value,
    )


def _is_live(cell: Cell, now: int) -> bool:
    return cell.local_deletion_time == NO_DELETION_TIME or (cell.ttl != 0 and cell.local_deletion_time > now)


def _columns(rows: Iterable[Row], deletion: DeletionTime, now: int) -> dict[str, Any]:
    simple: dict[str, list[Cell]] = {}
    elements: dict[tuple[str, bytes], list[Cell]] = {}
    marks: dict[str, int] = {}
    for row in rows:
        for name, data in row.columns.items():
            if isinstance(data, Cell):
                simple.setdefault(name, []).append(data)
                continue
            marks[name] = max(marks.get(name, deletion[0]), data.deletion[0])
            for cell in data.cells:
                elements.setdefault((name, cell.path or b""), []).append(cell)
    image: dict[str, Any] = {}
    for name, cells in simple.items():
        best = max((cell for cell in cells if cell.timestamp > deletion[0]), key=_rank, default=None)
        if best is not None and _is_live(best, now):
            image[name] = best.value
    for (name, path), cells in elements.items():
        best = max((cell for cell in cells if cell.timestamp > marks[name]), key=_rank, default=None)
        if best is not None and _is_live(best, now):
            image.setdefault(name, []).append((path, best.value))
    return {name: tuple(sorted(value)) if isinstance(value, list) else value for name, value in image.items()}


def _has_liveness(rows: Iterable[Row], deletion: DeletionTime, now: int) -> bool:
    living = [row.liveness for row in rows if not row.liveness.is_empty and row.liveness.timestamp > deletion[0]]
    best = max(living, key=lambda mark: (mark[0], mark[1] != 0, mark[2], -mark[1]), default=None)
    return best is not None and (best.ttl == 0 or best.local_expiration_time > now)


def _ends(row: Row) -> Iterator[int]:
    if row.liveness.ttl:
        yield row.liveness.local_expiration_time
    for data in row.columns.values():
        for cell in (data,) if isinstance(data, Cell) else data.cells:
            if cell.ttl:
                yield cell.local_deletion_time
