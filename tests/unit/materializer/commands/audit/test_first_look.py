"""The comparison of one span: what differs is found and nothing else; what cannot be read is split and named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cdc_common.program.pace import Pace
from materializer.commands.audit.shown import ROW_UNIT, STATIC_UNIT, whole_value
from tests.support.materializer.audited import MemoryTable, PlainRow, compare, state_units
from tests.support.materializer.raw_builder import TABLE, int_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from materializer.commands.audit.first_look import SpanResult

ROWS = st.lists(
    st.builds(
        PlainRow,
        k=st.integers(0, 5),
        c=st.integers(-3, 3),
        a=st.sampled_from([None, "", "x", "y"]),
        s=st.sampled_from([(), ("e",), ("e", "f")]),
        time=st.sampled_from([1000, 2000]),
        ttl=st.sampled_from([None, 100]),
        st=st.none(),
    ),
    unique_by=lambda row: (row.k, row.c),
    max_size=25,
)


def differing(result: SpanResult) -> list[tuple[int, int | None]]:
    """The keys of the candidates; c is None for static columns."""
    return [
        (_int(candidate.partition_key), None if candidate.clustering is None else _int(candidate.clustering[0]))
        for candidate in result.candidates
    ]


def _int(value: bytes | None) -> int:
    return int.from_bytes(value or b"", "big", signed=True)


def shown(row: PlainRow) -> tuple[object, ...]:
    """Return the part of a row that SELECT shows: a row without values has no write time."""
    time = row.time if row.a is not None or row.s else 0
    return row.a, row.s, time, row.ttl if row.a is not None else None


@given(state=ROWS, table=ROWS, page_rows=st.integers(1, 7))
def test_rows_differ_as_their_contents_do(state: Sequence[PlainRow], table: Sequence[PlainRow], page_rows: int) -> None:
    in_state, in_table = ({(row.k, row.c): shown(row) for row in rows} for rows in (state, table))
    expected = {key for key in in_state.keys() | in_table.keys() if in_state.get(key) != in_table.get(key)}
    result = compare(state, MemoryTable(table), page_rows=page_rows)
    assert len(result.candidates) == len(expected)
    assert set(differing(result)) == expected
    assert (result.rows, result.unread) == (len(table), ())
    assert result.units == len(in_state.keys() | in_table.keys())


def test_static_columns_are_a_unit_of_their_own() -> None:
    state = [PlainRow(1, 1, "a", st="old"), PlainRow(1, 2, "a", st="old"), PlainRow(2, 1, "a")]
    table = [PlainRow(1, 1, "a", st="new"), PlainRow(1, 2, "a", st="new"), PlainRow(2, 1, "a", st="only here")]
    assert sorted(differing(compare(state, MemoryTable(table)))) == [(1, None), (2, None)]
    assert {unit.place[2][:1] for unit in state_units(state)} == {STATIC_UNIT, ROW_UNIT}


@pytest.mark.parametrize("bad_after", [0, 25])
def test_a_partition_that_cannot_be_read_hides_no_other(bad_after: int) -> None:
    rows = [PlainRow(k, c, "a") for k in range(20) for c in range(30)]
    bad = decorated_token(int_bytes(7))
    state = [row._replace(a="b") if row.k in (6, 7, 8) and row.c == 29 else row for row in rows]
    table = MemoryTable(rows, {bad: "tombstones"}, bad_after)
    result = compare(state, table, page_rows=50)
    assert sorted(differing(result)) == [(6, 29), (8, 29)]
    assert [(unread.span.first, unread.span.last, unread.reason) for unread in result.unread] == [
        (bad, bad, "tombstones")
    ]
    assert result.unread[0].begun == bool(bad_after)


def test_reading_ends_where_nothing_can_be_read() -> None:
    rows = [PlainRow(k, 1, "a") for k in range(300)]
    table = MemoryTable(rows, {decorated_token(row.partition_key): "timeout" for row in rows})
    result = compare(rows, table)
    assert result.candidates == ()
    assert table.pages < 100
    tokens = [decorated_token(row.partition_key) for row in rows]
    assert all(any(unread.span.first <= token <= unread.span.last for unread in result.unread) for token in tokens)


def test_it_ends_when_too_many_rows_differ() -> None:
    rows = [PlainRow(k, 1, "a") for k in range(300)]
    result = compare([], MemoryTable(rows), most=10)
    assert len(result.candidates) == 10
    [unread] = result.unread
    assert unread.reason == "too many rows differ"
    assert unread.begun


def test_a_state_without_rows_in_cassandra_ends_too() -> None:
    rows = [PlainRow(k, 1, "a") for k in range(300)]
    assert len(compare(rows, MemoryTable([]), most=10).candidates) == 10


def test_a_set_is_one_value() -> None:
    type_ = next(column.type for column in TABLE.regular_columns if column.name == "s")
    assert whole_value(type_, [(b"e", b""), (b"fg", b"")]) == b"\0\0\0\2\0\0\0\1e\0\0\0\2fg"


def test_the_pace_is_held_and_what_was_not_used_is_not_saved_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr("time.monotonic", lambda: now)
    monkeypatch.setattr("time.sleep", sleep)
    pace = Pace(50)
    for _ in range(10):
        pace.wait(100)
    assert 19 <= now - 100 <= 21
    now += 60
    pace.wait(100)
    pace.wait(100)
    assert now - 180 >= 2.9
    Pace(0).wait(10**9)
