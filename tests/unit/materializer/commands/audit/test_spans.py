"""The parts of the ring."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.primitives.token_ranges import MAXIMUM, MINIMUM, Span
from materializer.commands.audit.spans import SpanIndex, divide, slices

TOKENS = st.integers(MINIMUM, MAXIMUM)


@given(ends=st.tuples(TOKENS, TOKENS), count=st.integers(1, 50), token=TOKENS)
def test_parts_are_in_order_and_leave_nothing_out(ends: tuple[int, int], count: int, token: int) -> None:
    whole = Span(min(ends), max(ends))
    parts = divide(whole, count)
    assert parts[0].first == whole.first
    assert parts[-1].last == whole.last
    assert all(before.last + 1 == after.first for before, after in pairwise(parts))
    assert len(parts) == min(count, whole.last - whole.first + 1)
    number = SpanIndex(parts).find(token)
    if number is None:
        assert not whole.first <= token <= whole.last
    else:
        assert parts[number].first <= token <= parts[number].last


def test_slices_are_the_whole_ring() -> None:
    assert slices(1) == [Span(MINIMUM, MAXIMUM)]
    assert [slices(7)[0].first, slices(7)[-1].last] == [MINIMUM, MAXIMUM]
