"""Row merging is a join-semilattice: order, duplicates and grouping of the versions do not matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.merge.reconciliation import RowMerger, reconcile, supersedes
from cassandra_storage.formats.rows.byte_comparable import path_encoder
from cassandra_storage.formats.rows.deletion import (
    EXPIRED_LIVENESS_TTL,
    LIVE,
    NO_LIVENESS,
    DeletionTime,
    LivenessInfo,
    RowDeletion,
)
from cassandra_storage.formats.rows.row import Cell, ColumnData, ComplexColumnData, Row
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata
from cassandra_storage.formats.types.marshal import NativeType, SetType

if TYPE_CHECKING:
    from random import Random

COLUMNS = {
    "a": ColumnMetadata("a", NativeType("text"), ColumnKind.REGULAR),
    "b": ColumnMetadata("b", NativeType("text"), ColumnKind.REGULAR),
    "s": ColumnMetadata("s", SetType(NativeType("text"), is_multi_cell=True), ColumnKind.REGULAR),
    "d": ColumnMetadata("d", SetType(NativeType("decimal"), is_multi_cell=True), ColumnKind.REGULAR),
}
PATHS = {
    "s": (b"p", b"q", b"r"),
    "d": tuple(
        scale.to_bytes(4, "big") + bytes((unscaled,)) for scale, unscaled in ((0, 1), (1, 10), (2, 100), (0, 2))
    ),
}
MERGER = RowMerger(COLUMNS, is_counter=False)

timestamps = st.integers(1, 4)
seconds = st.integers(100, 103)
values = st.sampled_from([b"", b"x", b"y"])
deletions = st.just(LIVE) | st.builds(DeletionTime, timestamps, seconds)
# Not shadowable: see test_shadowable_deletions_depend_on_the_order.
row_deletions = deletions.map(RowDeletion)


def cells(path: bytes | None = None) -> st.SearchStrategy[Cell]:
    live = st.tuples(timestamps, values)
    tombstone = st.tuples(timestamps, st.just(b""), seconds)
    expiring = st.tuples(timestamps, values, seconds, st.integers(1, 3))
    return (live | tombstone | expiring).map(lambda parts: Cell(*parts)._replace(path=path))


@st.composite
def complex_columns(draw: st.DrawFn, name: str) -> ComplexColumnData:
    encode = path_encoder(COLUMNS[name].type)
    paths = draw(st.lists(st.sampled_from(PATHS[name]), unique_by=encode))
    return ComplexColumnData(draw(deletions), tuple(draw(cells(path)) for path in sorted(paths, key=encode)))


@st.composite
def rows(draw: st.DrawFn) -> Row:
    columns: dict[str, ColumnData] = {}
    for name in draw(st.sets(st.sampled_from(sorted(COLUMNS)))):
        columns[name] = draw(complex_columns(name)) if name in PATHS else draw(cells())
    ttls = st.sampled_from([1, 2, 3, EXPIRED_LIVENESS_TTL])
    liveness = st.tuples(timestamps) | st.tuples(timestamps, ttls, seconds)
    return Row(
        (b"c",),
        columns,
        draw(st.just(NO_LIVENESS) | liveness.map(lambda parts: LivenessInfo(*parts))),
        draw(row_deletions),
    )


@given(st.lists(rows(), min_size=1, max_size=4), deletions, st.randoms())
def test_order_and_duplicates_do_not_matter(versions: list[Row], active: DeletionTime, random: Random) -> None:
    merged = MERGER.merge(versions, active)
    again = versions + versions[:2]
    random.shuffle(again)
    assert MERGER.merge(again, active) == merged


@given(rows(), rows(), rows(), deletions)
def test_grouping_does_not_matter(a: Row, b: Row, c: Row, active: DeletionTime) -> None:
    assert MERGER.merge((MERGER.merge((a, b), active), c), active) == MERGER.merge((a, b, c), active)


@given(rows(), rows(), deletions)
def test_a_deletion_may_come_before_or_after(a: Row, b: Row, active: DeletionTime) -> None:
    before = MERGER.merge((MERGER.merge((a,), active), b), active)
    after = MERGER.merge((MERGER.merge((a, b)),), active)
    assert before == after


def test_shadowable_deletions_depend_on_the_order() -> None:
    """Cassandra depends on it too (dev/verify/oracle): a newer row liveness lifts the deletion, but not from what
    it has deleted.

    No supported release writes them, and the materializer refuses them by name (decision 0007).
    """
    deleted = Row((), {}, deletion=RowDeletion(DeletionTime(1, 100), is_shadowable=True))
    cell, inserted = Row((), {"a": LIVE_X._replace(timestamp=1)}), Row((), {}, LivenessInfo(2))
    assert MERGER.merge((deleted, cell, inserted)) == Row((), cell.columns, inserted.liveness)
    assert MERGER.merge((MERGER.merge((deleted, cell)), inserted)) == inserted


LIVE_X, LIVE_Y = Cell(7, b"x"), Cell(7, b"y")
TOMBSTONE = Cell(7, b"", local_deletion_time=100)
EXPIRING = Cell(7, b"x", local_deletion_time=100, ttl=10)


@pytest.mark.parametrize(
    ("winner", "loser"),
    [
        (Cell(8, b""), LIVE_Y),
        (LIVE_Y, LIVE_X),
        (TOMBSTONE, LIVE_Y),
        (EXPIRING, LIVE_Y),  # CASSANDRA-14592
        (TOMBSTONE, EXPIRING._replace(local_deletion_time=200)),
        (EXPIRING._replace(local_deletion_time=101), EXPIRING),
        (EXPIRING._replace(ttl=9), EXPIRING),
        (EXPIRING._replace(value=b"y"), EXPIRING),
    ],
)
def test_ties(winner: Cell, loser: Cell) -> None:
    assert reconcile(winner, loser) == reconcile(loser, winner) == winner


def test_liveness_ties() -> None:
    plain, expiring = LivenessInfo(7), LivenessInfo(7, 10, 100)
    assert supersedes(expiring, plain)
    assert not supersedes(plain, expiring)
    assert supersedes(LivenessInfo(7, 9, 100), expiring)
    assert supersedes(LivenessInfo(8), expiring)
    assert not supersedes(NO_LIVENESS, plain)


def test_a_counter_tombstone_wins_whatever_its_timestamp() -> None:
    tombstone, later = Cell(1, b"", local_deletion_time=100), Cell(2, b"", local_deletion_time=90)
    assert reconcile(tombstone, Cell(9, b"context"), is_counter=True) == tombstone
    assert reconcile(Cell(9, b"context"), tombstone, is_counter=True) == tombstone
    assert reconcile(tombstone, later, is_counter=True) == reconcile(later, tombstone, is_counter=True) == later
