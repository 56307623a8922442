"""The position moves only past what wholly has been acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from publisher.inflight import InFlight, Mark

if TYPE_CHECKING:
    from random import Random


@given(st.lists(st.integers(0, 3), max_size=30), st.randoms(use_true_random=False))
def test_acknowledgements_in_any_order_never_move_past_the_oldest_outstanding(counts: list[int], rng: Random) -> None:
    in_flight = InFlight()
    outstanding: list[tuple[int, Mark]] = []
    unacknowledged = {position: count for position, count in enumerate(counts, start=1) if count}
    for position, count in enumerate(counts, start=1):
        if count:
            mark = Mark(7, position, count)
            in_flight.add(mark)
            outstanding += [(position, mark)] * count
        else:
            in_flight.move(7, position)
    reached = 0
    rng.shuffle(outstanding)
    for position, acknowledged in [(0, None), *outstanding]:
        if acknowledged is not None:
            acknowledged.acknowledge()
            unacknowledged[position] -= 1
        for taken in in_flight.take_acknowledged():
            assert taken.position >= reached
            reached = taken.position
        oldest = min((place for place, count in unacknowledged.items() if count), default=len(counts) + 1)
        assert reached < oldest
    assert reached == len(counts)
    assert not len(in_flight)


def test_nothing_sent_moves_the_newest_mark_of_its_segment_only() -> None:
    in_flight = InFlight()
    in_flight.add(Mark(1, 10, 1))
    in_flight.move(1, 20)
    in_flight.add(Mark(1, 20, is_end=True))
    in_flight.move(1, 30)
    in_flight.move(2, 5)
    assert len(in_flight) == 4
    assert in_flight.take_acknowledged() == []


def test_a_clock_goes_with_the_newest_mark() -> None:
    in_flight = InFlight()
    assert not in_flight.tick(5)
    mark = Mark(1, 10, 1)
    in_flight.add(mark)
    assert in_flight.tick(6)
    mark.acknowledge()
    assert [taken.clock for taken in in_flight.take_acknowledged()] == [6]
