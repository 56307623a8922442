"""Row merging is a join-semilattice: order, duplicates and grouping of the versions do not matter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.deletion import (
    LIVE,
    NO_DELETION_TIME,
    NO_LIVENESS,
    NO_ROW_DELETION,
    DeletionTime,
    LivenessInfo,
    RowDeletion,
)
from cassandra_storage.marshal import NativeType, SetType
from cassandra_storage.merge import RowMerger, reconcile, supersedes
from cassandra_storage.rows import Cell, ColumnData, ComplexColumnData, Row
from cassandra_storage.schema import ColumnKind, ColumnMetadata

COLUMNS = {
    "a": ColumnMetadata("a", NativeType("text"), ColumnKind.REGULAR),
    "b": ColumnMetadata("b", NativeType("text"), ColumnKind.REGULAR),
    "s": ColumnMetadata("s", SetType(NativeType("text"), is_multi_cell=True), ColumnKind.REGULAR),
}
MERGER = RowMerger(COLUMNS, is_counter=False)

timestamps = st.integers(1, 4)
seconds = st.integers(100, 103)
values = st.sampled_from([b"", b"x", b"y"])
deletions = st.just(LIVE) | st.builds(DeletionTime, timestamps, seconds)
row_deletions = st.just(NO_ROW_DELETION) | st.builds(RowDeletion, deletions)


def cells(path: bytes | None = None) -> st.SearchStrategy[Cell]:
    live = st.builds(Cell, timestamps, values, path=st.just(path))
    tombstone = st.builds(Cell, timestamps, st.just(b""), seconds, path=st.just(path))
    expiring = st.builds(Cell, timestamps, values, seconds, st.integers(1, 3), path=st.just(path))
    return live | tombstone | expiring


@st.composite
def complex_columns(draw: st.DrawFn) -> ComplexColumnData:
    paths = draw(st.lists(st.sampled_from([b"p", b"q", b"r"]), unique=True))
    return ComplexColumnData(draw(deletions), tuple(draw(cells(path)) for path in sorted(paths)))


@st.composite
def rows(draw: st.DrawFn) -> Row:
    columns: dict[str, ColumnData] = {}
    for name in draw(st.sets(st.sampled_from(sorted(COLUMNS)))):
        columns[name] = draw(complex_columns() if name == "s" else cells())
    liveness = draw(
        st.just(NO_LIVENESS)
        | st.builds(LivenessInfo, timestamps)
        | st.builds(LivenessInfo, timestamps, st.integers(1, 3), seconds)
    )
    return Row((b"c",), columns, liveness, draw(row_deletions))


@given(st.lists(rows(), min_size=1, max_size=4), deletions, st.randoms())
def test_order_and_duplicates_do_not_matter(versions: list[Row], active: DeletionTime, random: object) -> None:
    merged = MERGER.merge(versions, active)
    again = versions + versions[:2]
    random.shuffle(again)  # type: ignore[attr-defined]  # Hypothesis types its Random as an object
    assert MERGER.merge(again, active) == merged


@given(rows(), rows(), rows(), deletions)
def test_grouping_does_not_matter(a: Row, b: Row, c: Row, active: DeletionTime) -> None:
    assert MERGER.merge((MERGER.merge((a, b), active), c), active) == MERGER.merge((a, b, c), active)


@given(rows(), rows(), deletions)
def test_a_deletion_may_come_before_or_after(a: Row, b: Row, active: DeletionTime) -> None:
    before = MERGER.merge((MERGER.merge((a,), active), b), active)
    after = MERGER.merge((MERGER.merge((a, b)),), active)
    assert before == after


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
    tombstone = Cell(1, b"", local_deletion_time=100)
    assert reconcile(tombstone, Cell(9, b"context"), is_counter=True) == tombstone
    assert tombstone.local_deletion_time != NO_DELETION_TIME
