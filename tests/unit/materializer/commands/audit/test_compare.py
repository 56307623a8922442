"""The differences that count at the second look, and the likely cause of each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.rows.deletion import LIVE, NO_ROW_DELETION, DeletionTime, RowDeletion
from cassandra_storage.formats.rows.row import Cell, Row
from materializer.commands.audit.compare import (
    CLOCK_SECONDS,
    ROW,
    Cause,
    ColumnPair,
    cause_of,
    differences,
    judge,
    seen,
)
from materializer.commands.audit.shown import ABSENT, ShownCell, Side

VALUES = st.builds(ShownCell, st.sampled_from([b"a", b"b"]), st.integers(1, 5), st.none())
SIDES = st.one_of(
    st.just(ABSENT), st.builds(lambda cells: Side(is_there=True, cells=cells), st.dictionaries(st.just("v"), VALUES))
)


def side(**cells: ShownCell) -> Side:
    return Side(is_there=True, cells=cells)


def cell(value: bytes = b"x", timestamp: int | None = 10, expires: int | None = None) -> ShownCell:
    return ShownCell(value, timestamp, expires)


@given(state=SIDES, selected=SIDES)
def test_a_difference_that_stays_counts(state: Side, selected: Side) -> None:
    found = differences(state, selected)
    counted, changed = judge(seen(found), state, selected)
    assert (counted, changed) == (found, {})


@given(state=SIDES, selected=SIDES, later=SIDES)
def test_a_state_that_catches_up_does_not_count(state: Side, selected: Side, later: Side) -> None:
    """It shows what the first SELECT showed, whatever the second one shows, unless that is a new column."""
    first = seen(differences(state, selected))
    counted, changed = judge(first, selected, later)
    assert counted == {} or selected == state
    assert set(changed) <= {*differences(selected, later)} - {*first}


def test_a_write_between_the_two_selects_is_right() -> None:
    first = seen(differences(side(v=cell(b"0", 1)), side(v=cell(b"2", 2))))
    assert judge(first, side(v=cell(b"3", 3)), side(v=cell(b"4", 4))) == ({}, {})
    late = ColumnPair(cell(b"5", 5), cell(b"4", 4))
    assert judge(first, side(v=late.state), side(v=late.selected)) == ({}, {"v": late})  # type: ignore[arg-type]


def test_a_row_that_was_deleted_and_written_again_is_another_one() -> None:
    """Also where SELECT cannot tell write times."""
    before, after = (side(m=cell(value, timestamp=None)) for value in (b"1", b"2"))
    first = seen(differences(ABSENT, before))
    assert judge(first, ABSENT, before) == (differences(ABSENT, before), {})
    assert judge(first, ABSENT, after) == ({}, differences(ABSENT, after))
    assert judge(first, before, ABSENT) == ({}, {})
    first = seen(differences(before, ABSENT))
    assert judge(first, before, ABSENT) == (differences(before, ABSENT), {})
    assert judge(first, after, ABSENT) == ({}, differences(after, ABSENT))


def test_only_the_column_that_stays_counts() -> None:
    first = seen(differences(side(v=cell(b"1"), w=cell(b"1", 1)), side(v=cell(b"2"), w=cell(b"2", 2))))
    counted, changed = judge(first, side(v=cell(b"1"), w=cell(b"2", 2)), side(v=cell(b"2"), w=cell(b"3", 3)))
    assert (set(counted), changed) == ({"v"}, {})


def test_times_to_live_may_differ_by_the_clocks() -> None:
    expires = 1000
    near, far = (side(v=cell(expires=expires + by)) for by in (CLOCK_SECONDS, CLOCK_SECONDS + 1))
    assert differences(side(v=cell(expires=expires)), near) == {}
    assert set(differences(side(v=cell(expires=expires)), far)) == {"v"}
    assert set(differences(side(v=cell()), near)) == {"v"}


def test_what_select_cannot_tell_is_not_compared() -> None:
    assert differences(side(v=cell(timestamp=10)), side(v=cell(timestamp=None))) == {}


def test_causes() -> None:
    def cause(state: ShownCell | None, selected: ShownCell | None, name: str = "v", row: Row | None = None) -> Cause:
        return cause_of(name, ColumnPair(state, selected), row, LIVE)

    assert cause(None, cell(), ROW) == Cause.MISSING_ROW
    assert cause(cell(), None, ROW) == Cause.EXTRA_ROW
    assert cause(None, cell()) == Cause.MISSING_VALUE
    assert cause(cell(), None) == Cause.EXTRA_VALUE
    assert cause(cell(timestamp=9), cell(timestamp=10)) == Cause.STATE_OLDER
    assert cause(cell(timestamp=11), cell(timestamp=10)) == Cause.STATE_NEWER
    assert cause(cell(b"y"), cell()) == Cause.VALUE_DIFFERS
    assert cause(cell(expires=1), cell()) == Cause.TTL_DIFFERS


def test_a_deletion_in_the_state_is_named_if_it_covers_the_write() -> None:
    def cause(name: str, row: Row | None, deletion: DeletionTime = LIVE) -> Cause:
        return cause_of(name, ColumnPair(None, cell(timestamp=10)), row, deletion)

    older, covering = DeletionTime(9, 1), DeletionTime(10, 1)
    for name in (ROW, "v"):
        assert cause(name, None, covering) == Cause.DELETED_IN_STATE
        assert cause(name, None, older) != Cause.DELETED_IN_STATE
        assert cause(name, Row((), {}, deletion=RowDeletion(covering))) == Cause.DELETED_IN_STATE
    assert cause("v", Row((), {"v": Cell(11, b"", 1)}, deletion=NO_ROW_DELETION)) == Cause.DELETED_IN_STATE
    assert cause("v", Row((), {"v": Cell(9, b"", 1)}, deletion=NO_ROW_DELETION)) == Cause.MISSING_VALUE
