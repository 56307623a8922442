"""The native core and the Python code join messages to the same bytes, and to the same state."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cdc_native
from joinery.internal.codec import encode
from joinery.job import native_join
from joinery.job.native_join import NativeJoin
from joinery.joining.layout import frontier_key
from joinery.joining.records import Group, Kind, Origin, Routed, Row
from stream_runtime.records import Record
from tests.support.joinery.changelogs import Input, number, rule_of
from tests.support.joinery.join_checks import (
    PARTITION,
    TS_MS,
    Case,
    by_core,
    by_python,
    check_damaged_join,
    check_join,
    check_join_of_damaged_state,
    random_case,
    writer,
)
from tests.support.materializer.memory_state import MemoryState

pytestmark = pytest.mark.skipif(not cdc_native.is_enabled(), reason="the core is not in use")
RANDOM = st.randoms(use_true_random=False)


@settings(max_examples=300, deadline=None)
@given(RANDOM)
def test_random_joins(random: Random) -> None:
    check_join(random, random_case(random))


@settings(max_examples=300, deadline=None)
@given(RANDOM)
def test_damaged_messages(random: Random) -> None:
    check_damaged_join(random)


@settings(max_examples=300, deadline=None)
@given(RANDOM)
def test_damaged_states(random: Random) -> None:
    check_join_of_damaged_state(random)


def put(of: int, x: int, row_id: int, v: int, offset: int, sequence: int = 1) -> Record:
    row = Row(Group(number(x)), number(row_id), number(v))
    routed = Routed(Kind.PUT, row, Origin(of, 0, offset, sequence, -1_234_567, "äußert"))
    return Record(*encode(routed), offset, 0)


INPUTS = [Input(False, False), Input(True, False)]


def wide(rows: int) -> Case:
    """A row that meets so many rows, and is changed."""
    records = [put(1, 7, row_id, 1, row_id) for row_id in range(rows)]
    return Case(rule_of(INPUTS), [*records, put(0, 7, 1, 1, rows), put(0, 7, 1, 2, rows + 1, sequence=2)])


def test_the_core_joins_a_chunk_whole() -> None:
    """With rows that it has to scan, and with those of the chunk between them."""
    case, state = wide(20), MemoryState()
    stored = case._replace(records=case.records[:20:2])
    assert by_python(stored, state, 1 << 30).done == 10
    join = NativeJoin(case.rule, writer(case), PARTITION)
    found = join.join(state, case.records[1:20:2] + case.records[20:], 1 << 30, TS_MS)
    assert found is not None
    assert (found.changes, found.left, found.late, len(found.messages)) == (40, 0, 0, 40)
    expected = by_python(case._replace(records=case.records[1:20:2] + case.records[20:]), state, 1 << 30)
    assert list(found.messages) == expected.messages
    assert found.writes[frontier_key(0, 0)] == expected.state[frontier_key(0, 0)]


def test_a_large_group_is_the_python_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_join, "MOST_ROWS", 19)
    case = wide(20)
    made = by_core(case, MemoryState(), 1 << 30, Random(1))
    assert (made.done, made.native) == (22, 20)
    assert made.messages == by_python(case, MemoryState(), 1 << 30).messages


def test_what_does_not_fit_is_left() -> None:
    """The changes of a message that do not fit after those before it come next. Those of one message come in parts."""
    case = wide(20)
    join = NativeJoin(case.rule, writer(case), PARTITION)
    found = join.join(MemoryState(), case.records, 700, TS_MS)
    assert found is not None
    assert (found.changes, found.left) == (20, 1)
    assert by_core(case, MemoryState(), 100, Random(1)).native == 20


def test_two_rows_of_an_input_that_has_one() -> None:
    """No router makes such messages: the row without an ident is not the only one then."""
    records = [put(1, 7, 1, 1, 0), put(1, 7, 2, 1, 1), put(0, 7, 1, 1, 2)]
    case = Case(rule_of([Input(True, False), Input(True, True)]), records)
    state = MemoryState()
    assert by_python(case._replace(records=records[:1]), state, 1 << 30).done == 1
    rest = case._replace(records=records[1:])
    copy = MemoryState()
    copy.data = dict(state.data)
    assert by_core(rest, state, 1 << 30, Random(1)).messages == by_python(rest, copy, 1 << 30).messages
