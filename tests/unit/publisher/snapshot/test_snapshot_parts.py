"""The parts of a large table: together they are all of it, and each is as large as it may be."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.primitives.token_ranges import MAXIMUM, MINIMUM, Span, TokenRange, spans
from publisher.snapshot.state.parts import part_end, share_done

tokens = st.integers(MINIMUM, MAXIMUM)
ranges = st.lists(st.builds(TokenRange, tokens, tokens), min_size=1, max_size=5)


@given(ranges, st.integers(1, 10**15), st.floats(0.01, 100))
def test_the_parts_follow_each_other_and_the_last_has_the_rest(
    owned: list[TokenRange], file_bytes: int, parts: float
) -> None:
    found = spans(owned)
    part_bytes = file_bytes / parts
    ends: list[int] = []
    while (end := part_end(found, found, ends[-1] if ends else None, file_bytes, part_bytes)) is not None:
        assert not ends or end > ends[-1]
        assert any(first <= end <= last for first, last in found)
        ends.append(end)
    shares = [share_done(found, end) for end in ends]
    sizes = [(after - before) * file_bytes for before, after in zip([0, *shares], [*shares, 1], strict=True)]
    count = sum(last - first + 1 for first, last in found)
    if count > 1000 * parts:  # a part is a whole number of tokens
        needed = max(1, ceil(file_bytes / part_bytes))
        assert needed <= len(sizes) <= needed + 1  # where it divides evenly, rounding may make one more
        assert max(sizes) <= part_bytes * 1.01 or len(sizes) == 1


def test_a_table_that_is_small_enough_has_one_part() -> None:
    whole = [Span(MINIMUM, MAXIMUM)]
    assert part_end(whole, whole, None, 100, 100) is None
    assert part_end(whole, whole, None, 10**15, 0) is None
    assert part_end(whole, whole, MAXIMUM, 10**15, 1) is None
    assert part_end(whole, whole, None, 101, 100) == -1


def test_only_what_is_sent_counts() -> None:
    whole, some = [Span(MINIMUM, MAXIMUM)], [Span(0, MAXIMUM)]
    assert part_end(whole, some, None, 200, 100) is None
    assert part_end(whole, some, None, 400, 100) == (1 << 62) - 1
    assert part_end(whole, some, (1 << 62) - 1, 400, 100) is None


def test_the_share_of_tokens_that_is_done() -> None:
    owned = [Span(-100, -1), Span(100, 199)]
    assert [share_done(owned, token) for token in (None, -101, -100, -51, 0, 149, 199, 500)] == [
        0.0, 0.0, 0.005, 0.25, 0.5, 0.75, 1.0, 1.0
    ]  # fmt: skip
    assert share_done([], 5) == pytest.approx(0.0)
