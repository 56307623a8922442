"""The position moves only past messages that are acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from publisher.inflight import InFlight, PendingPosition

if TYPE_CHECKING:
    from random import Random


@given(st.lists(st.integers(0, 3), max_size=30), st.randoms(use_true_random=False))
def test_acknowledgements_in_any_order_never_move_past_the_oldest_outstanding(counts: list[int], rng: Random) -> None:
    in_flight = InFlight()
    outstanding: list[tuple[int, PendingPosition]] = []
    unacknowledged = {position: count for position, count in enumerate(counts, start=1) if count}
    for position, count in enumerate(counts, start=1):
        if count:
            pending = PendingPosition(7, position, outstanding=count)
            in_flight.add(pending)
            outstanding += [(position, pending)] * count
        else:
            in_flight.extend_to(7, position)
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


def test_nothing_sent_extends_the_newest_position_of_its_segment_only() -> None:
    in_flight = InFlight()
    in_flight.add(PendingPosition(1, 10, outstanding=1))
    in_flight.extend_to(1, 20)
    in_flight.add(PendingPosition(1, 20, is_end=True))
    in_flight.extend_to(1, 30)
    in_flight.extend_to(2, 5)
    assert len(in_flight) == 4
    assert in_flight.take_acknowledged() == []


def test_a_clock_belongs_to_the_newest_position() -> None:
    in_flight = InFlight()
    assert not in_flight.set_clock(5)
    pending = PendingPosition(1, 10, outstanding=1)
    in_flight.add(pending)
    assert in_flight.set_clock(6)
    pending.acknowledge()
    assert [taken.clock for taken in in_flight.take_acknowledged()] == [6]
