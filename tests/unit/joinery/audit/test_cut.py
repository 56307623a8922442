"""The cut that an audit finds in an internal topic is the frontier that the join's own state has there."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.audit.cut import Cut, CutFinder
from joinery.joining.join import join_chunk
from joinery.joining.layout import read_frontier
from joinery.joining.records import Group, Kind, Origin, Routed, Row
from tests.support.joinery.changelogs import Change, Changelogs, Input, mark_of, rule_of
from tests.support.materializer.memory_state import MemoryState

INPUTS = [Input(False, False), Input(True, False)]
ALL = 1 << 30


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_each_cut_is_the_frontier_of_the_state(seed: int) -> None:
    random = Random(seed)
    logs = Changelogs(INPUTS)
    for _ in range(40):
        logs.add(
            Change(random.randrange(2), random.randrange(4), random.choice((None, 0, 1)), random.choice((None, 1)))
        )
    logs.mark(random)
    waiting = list(logs.sent)
    while waiting:
        place = random.choice(waiting)
        if not logs.deliver(*place):
            waiting.remove(place)
    for topic in logs.topic.values():
        check(topic)


def check(topic: list[Routed]) -> None:
    finder, state, cuts = CutFinder(len(INPUTS)), MemoryState(), {}
    for offset, routed in enumerate(topic):
        made = join_chunk(rule_of(INPUTS), state, [(offset, routed)], ALL, is_new=offset == 0)
        state.apply(made.writes)
        finder.take(offset, routed)
        cuts[offset + 1] = read_frontier(iter(state.data.items()))
        cut = finder.cut
        if cuts[offset + 1] is not None:
            assert cut == (offset + 1, cuts[offset + 1], True)
        elif cut.has_begun:
            assert cut.frontier == cuts[cut.offset]


def put(offset: int, kind: Kind, *, has_more: bool = False) -> Routed:
    return Routed(kind, Row(Group(b"\x02"), b"\x02", b""), Origin(0, 0, offset, 1, 0, "write"), has_more=has_more)


@pytest.mark.parametrize("between", [0, 1])
def test_a_cut_is_before_a_change_whose_second_message_is_not_there(between: int) -> None:
    finder = CutFinder(1)
    finder.take(0, mark_of(0, 0, partitions=1))
    finder.take(1, put(5, Kind.PUT))
    finder.take(2, put(6, Kind.RETRACT, has_more=True))
    for number in range(between):
        finder.take(3 + number, put(2, Kind.PUT)._replace(origin=Origin(0, 1, 2, 1, 0, "write")))
    assert finder.cut == Cut(2, {(0, 0): 6}, has_begun=True)
    finder.take(9, put(6, Kind.PUT))
    assert finder.cut.offset == 10
    assert finder.cut.frontier[0, 0] == 7
