"""Hypothesis strategies: writes of every kind to small tables, so small that they meet all the time."""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from hypothesis import strategies as st

from cassandra_storage.formats.rows.clustering import ClusteringBound, Kind
from cassandra_storage.formats.rows.deletion import (
    LIVE,
    NO_LIVENESS,
    NO_ROW_DELETION,
    DeletionTime,
    LivenessInfo,
    RangeTombstone,
    RowDeletion,
)
from cassandra_storage.formats.rows.row import Cell, ComplexColumnData, Row
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.marshal import MapType, SetType
from tests.support.materializer.brute_model import BruteModel, Write
from tests.support.materializer.raw_builder import INT, TEXT, TableWriter, int_bytes

if TYPE_CHECKING:
    from cdc_common.messages import raw

BASE_S = 1_700_000_000
BASE_US = BASE_S * 1_000_000
PARTITIONS = (int_bytes(1), int_bytes(2))


def column(name: str, type_: Any, kind: ColumnKind, position: int = -1, *, reverse: bool = False) -> ColumnMetadata:  # noqa: ANN401
    return ColumnMetadata(name, type_, kind, position, reverse)


REGULAR = (
    column("a", TEXT, ColumnKind.REGULAR),
    column("b", TEXT, ColumnKind.REGULAR),
    column("m", MapType(INT, TEXT, is_multi_cell=True), ColumnKind.REGULAR),
    column("s", SetType(TEXT, is_multi_cell=True), ColumnKind.REGULAR),
)
STATIC = (
    column("st", TEXT, ColumnKind.STATIC),
    column("ss", SetType(TEXT, is_multi_cell=True), ColumnKind.STATIC),
)
KEY = (column("k", INT, ColumnKind.PARTITION_KEY, 0),)


def table(number: int, *clustering: ColumnMetadata) -> TableWriter:
    return TableWriter(
        TableMetadata(
            keyspace="ks",
            name=f"t{number}",
            id=UUID(int=number),
            partition_key=KEY,
            clustering=clustering,
            static_columns=STATIC if clustering else (),
            regular_columns=REGULAR,
            gc_grace_seconds=4,
        )
    )


FORWARD = table(1, column("c", INT, ColumnKind.CLUSTERING, 0))
REVERSED = table(2, column("c", INT, ColumnKind.CLUSTERING, 0, reverse=True))
MIXED = table(3, column("c", INT, ColumnKind.CLUSTERING, 0, reverse=True), column("d", TEXT, ColumnKind.CLUSTERING, 1))
SINGLE = table(4)
WRITERS = (FORWARD, REVERSED, MIXED, SINGLE)


class Stamp(NamedTuple):
    """A write's timestamp (µs) and the second at which it was made: they need not be near each other."""

    timestamp: int
    second: int

    @property
    def deletion(self) -> DeletionTime:
        return DeletionTime(self.timestamp, self.second)


@st.composite
def cells(draw: st.DrawFn, stamp: Stamp, path: bytes | None = None) -> Cell:
    value = draw(st.sampled_from([b"x", b"y"]))
    ttl = draw(st.sampled_from([0, 0, 0, 1, 2, 5]))
    if draw(st.integers(0, 3)) == 0:
        return Cell(stamp.timestamp, b"", stamp.second, path=path)
    if path is not None and draw(st.booleans()):
        value = b""
    if ttl:
        return Cell(stamp.timestamp, value, stamp.second + ttl, ttl, path)
    return Cell(stamp.timestamp, value, path=path)


@st.composite
def collections(draw: st.DrawFn, of: ColumnMetadata, stamp: Stamp) -> ComplexColumnData:
    paths = [int_bytes(number) for number in range(3)] if isinstance(of.type, MapType) else [b"p", b"q", b"r"]
    chosen = sorted(draw(st.sets(st.sampled_from(paths), max_size=2)))
    # Replacing a collection deletes what was there a microsecond before.
    deletion = draw(st.sampled_from([LIVE, DeletionTime(stamp.timestamp - 1, stamp.second)]))
    found = tuple(draw(cells(stamp, path)) for path in chosen)
    if isinstance(of.type, SetType):
        found = tuple(cell._replace(value=b"") for cell in found)
    if not found and deletion == LIVE:
        deletion = stamp.deletion
    return ComplexColumnData(deletion, found)


@st.composite
def columns(draw: st.DrawFn, of: tuple[ColumnMetadata, ...], stamp: Stamp, min_size: int) -> dict[str, Any]:
    chosen = draw(st.lists(st.sampled_from(of), min_size=min_size, max_size=2, unique=True))
    return {column.name: draw(collections(column, stamp) if column.is_complex else cells(stamp)) for column in chosen}


@st.composite
def clusterings(draw: st.DrawFn, of: TableMetadata) -> tuple[bytes, ...]:
    return tuple(
        draw(st.sampled_from([int_bytes(number) for number in (-1, 0, 1)] if column.type == INT else [b"", b"a", b"b"]))
        for column in of.clustering
    )


@st.composite
def regular_rows(draw: st.DrawFn, of: TableMetadata, stamp: Stamp) -> Row:
    clustering = draw(clusterings(of))
    kind = draw(st.sampled_from(["insert", "insert", "update", "update", "delete", "replace"]))
    if kind == "delete":
        return Row(clustering, {}, NO_LIVENESS, RowDeletion(stamp.deletion))
    written = draw(columns(REGULAR, stamp, 0 if kind == "insert" else 1))
    ttl = draw(st.sampled_from([0, 0, 1, 3]))
    liveness = NO_LIVENESS
    if kind == "insert":
        liveness = LivenessInfo(stamp.timestamp, ttl, stamp.second + ttl) if ttl else LivenessInfo(stamp.timestamp)
    # A batch may delete a row and write to it again with a later timestamp.
    deletion = RowDeletion(DeletionTime(stamp.timestamp - 2, stamp.second)) if kind == "replace" else NO_ROW_DELETION
    return Row(clustering, written, liveness, deletion)


@st.composite
def range_tombstones(draw: st.DrawFn, of: TableMetadata, stamp: Stamp) -> RangeTombstone:
    model = BruteModel(of)
    pair = [draw(clusterings(of)), draw(clusterings(of))]
    first, last = sorted(pair, key=cmp_to_key(model.compare))
    start = first[: draw(st.integers(0, len(first)))]
    end = last[: draw(st.integers(0, len(last)))]
    kinds = [draw(st.booleans()), draw(st.booleans())]
    if model.compare(start, end) == 0:  # otherwise nothing might lie between them
        kinds = [True, True]
    return RangeTombstone(
        ClusteringBound(Kind.INCL_START_BOUND if kinds[0] or not start else Kind.EXCL_START_BOUND, start),
        ClusteringBound(Kind.INCL_END_BOUND if kinds[1] or not end else Kind.EXCL_END_BOUND, end),
        stamp.deletion,
    )


@st.composite
def writes(draw: st.DrawFn, of: TableMetadata, stamp: Stamp) -> Write:
    """A write of any kind at its stamp."""
    partition_key = draw(st.sampled_from(PARTITIONS))
    kinds: list[raw.Kind] = ["row", "row", "row", "row", "row", "row", "partition_deletion"]
    if of.clustering:
        kinds += ["range_deletion", "range_deletion", "static", "static"]
    kind = draw(st.sampled_from(kinds))
    if kind == "row":
        return Write(partition_key, kind, draw(regular_rows(of, stamp)))
    if kind == "static":
        return Write(partition_key, kind, Row((), draw(columns(STATIC, stamp, 1))))
    if kind == "range_deletion":
        return Write(partition_key, kind, draw(range_tombstones(of, stamp)))
    return Write(partition_key, kind, stamp.deletion)
