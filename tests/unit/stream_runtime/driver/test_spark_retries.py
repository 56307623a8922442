"""Spark's query is started again after growing pauses, within a bound."""

from __future__ import annotations

import itertools

from stream_runtime.driver.spark_retries import LONGEST_SECONDS, SparkRetries


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def fail_until_it_ends(retries: SparkRetries, clock: Clock) -> list[float]:
    pauses = []
    while (pause := retries.next_pause()) is not None:
        pauses.append(pause)
        clock.now += pause + 1.0  # the query fails after a second
    return pauses


def test_pauses_grow_and_end_within_the_bound() -> None:
    clock = Clock()
    retries = SparkRetries(clock)
    pauses = fail_until_it_ends(retries, clock)
    assert pauses[:7] == [1, 2, 4, 8, 16, 32, 60]
    assert all(later >= earlier for earlier, later in itertools.pairwise(pauses))
    assert LONGEST_SECONDS - 65 < clock.now <= LONGEST_SECONDS + len(pauses)
    assert retries.total == len(pauses)


def test_a_query_that_has_worked_for_long_begins_anew() -> None:
    clock = Clock()
    retries = SparkRetries(clock)
    for _ in range(50):
        assert retries.next_pause() == 1.0
        clock.now += 300.0
    assert fail_until_it_ends(retries, clock)[:3] == [1, 2, 4]
