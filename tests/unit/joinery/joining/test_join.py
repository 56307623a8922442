"""The joined stream equals the SQL join of its inputs, at every frontier and at the end, with an unbroken chain."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.joining import groups
from joinery.joining.errors import FanOutError, LostHistoryError
from joinery.joining.join import join_chunk
from joinery.joining.records import Group, Kind, Origin, Routed, Row
from tests.support.joinery.changelogs import (
    TARGET_PARTITIONS,
    Change,
    Changelogs,
    Input,
    mark_of,
    rule_of,
)
from tests.support.joinery.joining_model import ALL, Partition, check_all
from tests.support.materializer.memory_state import MemoryState

INPUTS = st.lists(st.builds(Input, st.booleans(), st.booleans()), min_size=2, max_size=3)
X = st.none() | st.integers(0, 2)


@settings(max_examples=60, deadline=None)
@given(INPUTS, st.data(), st.randoms(use_true_random=False))
def test_every_frontier_equals_the_sql_join(inputs: list[Input], data: st.DataObject, random: Random) -> None:
    change = st.builds(Change, st.integers(0, len(inputs) - 1), st.integers(0, 3), X, st.none() | st.integers(0, 3))
    check_all(Changelogs(inputs), data.draw(st.lists(change, max_size=30)), random)


@settings(max_examples=60, deadline=None)
@given(INPUTS, st.data(), st.integers(0, 2**32))
def test_a_new_join_sends_all_rows_once(inputs: list[Input], data: st.DataObject, seed: int) -> None:
    """Nothing comes out before all marks; then each frontier equals the SQL join."""
    change = st.builds(Change, st.integers(0, len(inputs) - 1), st.integers(0, 3), X, st.none() | st.integers(0, 3))
    check_all(Changelogs(inputs), data.draw(st.lists(change, max_size=30)), Random(seed), is_new=True)


@pytest.mark.parametrize("most", [0, 1, 2])
def test_groups_that_are_not_in_memory_are_sent_too(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MOST_ROWS", most)
    for seed in range(20):
        random, inputs = Random(seed), [Input(False, False), Input(seed % 2 == 0, seed % 3 == 0)]
        changes = [
            Change(random.randrange(2), random.randrange(4), random.choice((None, 0, 1)), random.choice((None, 1, 2)))
            for _ in range(25)
        ]
        check_all(Changelogs(inputs), changes, random, is_new=True)


@pytest.mark.parametrize("kind", [Kind.UPDATE, Kind.RETRACT])
def test_after_its_mark_a_source_partition_must_be_known(kind: Kind) -> None:
    rule = rule_of([Input(False, False), Input(False, False)])
    row = Row(Group(b"\x02\x02"), b"\x02\x00", b"\x00")
    routed = Routed(kind, row, Origin(0, 1, 5, 9, 0, "write"), may_miss=True)
    state = MemoryState()
    state.apply(join_chunk(rule, state, [(0, mark_of(0, 0))], ALL, is_new=True).writes)
    assert not join_chunk(rule, state, [(1, routed)], ALL).left
    state.apply(join_chunk(rule, state, [(1, mark_of(0, 1))], ALL).writes)
    with pytest.raises(LostHistoryError):
        join_chunk(rule, state, [(2, routed)], ALL)


def test_parts_of_a_message_and_one_transaction_make_the_same_changes() -> None:
    inputs = [Input(True, False), Input(True, False), Input(False, False)]
    logs = Changelogs(inputs)
    for of in (0, 1):
        for row_id in range(5):
            logs.add(Change(of, row_id, 1, row_id))
    logs.add(Change(2, 0, 1, 7))
    logs.add(Change(2, 0, 1, 8))
    logs.add(Change(2, 0, 2, 8))
    logs.add(Change(2, 0, 1, 8))
    logs.add(Change(2, 0, 1, None))
    for place in logs.sent:
        while logs.deliver(*place):
            pass
    made = []
    for most in (1, 40, ALL):
        partitions = [Partition(logs, number) for number in range(TARGET_PARTITIONS)]
        for partition in partitions:
            while partition.is_behind:
                partition.join(100, most)
        made.append([partition.changes for partition in partitions])
    assert made[0] == made[1] == made[2]
    assert sum(map(len, made[0])) == 25 * 5 + 2


def test_a_message_that_fans_out_too_far_stops_alone() -> None:
    inputs = [Input(False, False), Input(False, False)]
    logs = Changelogs(inputs)
    for row_id in range(0, 6, 2):
        logs.add(Change(0, row_id, 1, 0))
    logs.add(Change(1, 0, 1, 0))
    (target,) = {place[2] for place in logs.sent}
    for place in list(logs.sent):
        while logs.deliver(*place):
            pass
    messages = list(enumerate(logs.topic[target]))
    state = MemoryState()
    first = join_chunk(rule_of(inputs, most_rows=2), state, messages, ALL)
    assert (first.left, first.changes) == (1, [])
    state.apply(first.writes)
    with pytest.raises(FanOutError, match=r"it changes 3 joined rows, and the limit is 2") as caught:
        join_chunk(rule_of(inputs, most_rows=2), state, messages[3:], ALL)
    assert caught.value.counts == (3, 0)
    raised = join_chunk(rule_of(inputs, most_rows=3), state, messages[3:], ALL)  # it continues there
    assert (raised.left, len(raised.changes)) == (0, 3)


@pytest.mark.parametrize("kind", [Kind.UPDATE, Kind.RETRACT])
def test_lost_history_is_noticed(kind: Kind) -> None:
    rule = rule_of([Input(False, False), Input(False, False)])
    routed = Routed(kind, Row(Group(b"\x02\x02"), b"\x02\x00", b"\x00"), Origin(0, 0, 5, 9, 0, "write"))
    with pytest.raises(LostHistoryError):
        join_chunk(rule, MemoryState(), [(0, routed)], ALL)
    made = join_chunk(rule, MemoryState(), [(0, routed._replace(may_miss=True))], ALL)
    assert (len(made.writes), made.left) == (3 if kind is Kind.UPDATE else 1, 0)


def test_an_older_version_changes_nothing() -> None:
    rule = rule_of([Input(False, False), Input(True, False)])
    row = Row(Group(b"\x02\x02"), b"\x02\x00", b"\x00")
    put = Routed(Kind.PUT, row, Origin(0, 0, 5, 9, 0, "write"))
    late = put._replace(origin=put.origin._replace(sequence=8, offset=6))
    made = join_chunk(rule, MemoryState(), [(0, put), (1, put), (2, late)], ALL)
    assert ([change.op for change in made.changes], made.late) == (["c"], 2)
    assert made.changes[0].rows == (9, None)
