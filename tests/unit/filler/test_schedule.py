"""A segment is full within its bound whatever the node itself writes, and a busy node is left alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from filler.schedule import Schedule, SegmentAge

SEGMENT = 32 << 20
BOUND = 600.0
PERIOD = 10.0
SCHEDULE = Schedule(SEGMENT, BOUND, PERIOD)


def fill(natural: list[int], *, sync_lag: int) -> tuple[float, int]:
    """Periods pass until the segment is full: (its age then, what the filler wrote). The filler sees what was written
    `sync_lag` periods ago.
    """
    history = [1]
    by_filler = 0
    age = 0.0
    while history[-1] < SEGMENT and age < 10 * BOUND:
        seen = history[max(0, len(history) - 1 - sync_lag)]
        written = SCHEDULE.padding(seen, age)
        by_filler += written
        index = int(age / PERIOD)
        history.append(history[-1] + written + (natural[index] if index < len(natural) else 0))
        age += PERIOD
    return age, by_filler


@given(st.lists(st.integers(0, 2 << 20), max_size=70), st.integers(0, 1))
def test_it_is_full_within_the_bound(natural: list[int], sync_lag: int) -> None:
    age, _ = fill(natural, sync_lag=sync_lag)
    assert age <= BOUND


def test_an_idle_node_gets_the_whole_segment_and_little_more() -> None:
    _, by_filler = fill([], sync_lag=1)
    assert SEGMENT - 1 <= by_filler <= SEGMENT * 1.05


@given(st.integers(1, 100))
def test_a_node_that_fills_its_segment_in_time_is_left_alone(periods: int) -> None:
    busy = [SEGMENT // min(periods, 54)] * 60  # 540 s: a tenth of the bound is left
    _, by_filler = fill(busy, sync_lag=1)
    assert by_filler == 0


def test_age_counts_from_when_a_segment_is_first_seen() -> None:
    age = SegmentAge()
    assert age.measure(7, 100.0) == 0
    assert age.measure(7, 130.0) == 30
    assert age.measure(8, 140.0) == 0
    assert age.measure(8, 141.0) == 1
