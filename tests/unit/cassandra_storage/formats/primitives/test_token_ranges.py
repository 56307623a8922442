"""Ranges of tokens against their definition, token by token."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.primitives.token_ranges import MAXIMUM, MINIMUM, WHOLE_RING, Span, TokenRange, spans

_NEAR = [*range(MINIMUM, MINIMUM + 4), *range(-2, 3), *range(MAXIMUM - 3, MAXIMUM + 1)]
tokens = st.sampled_from(_NEAR)


def _contains(range_: TokenRange, token: int) -> bool:
    """Range.contains."""
    if range_.start >= range_.end:
        return token > range_.start or token <= range_.end
    return range_.start < token <= range_.end


@given(st.lists(st.builds(TokenRange, tokens, tokens), max_size=4), tokens)
def test_spans_have_the_tokens_of_the_ranges(ranges: list[TokenRange], first: int) -> None:
    found = spans(ranges, first)
    assert all(span.first <= span.last for span in found)
    assert all(left.last + 1 < right.first for left, right in pairwise(found))
    for token in _NEAR:
        is_in = any(span.first <= token <= span.last for span in found)
        assert is_in == (token >= first and any(_contains(range_, token) for range_ in ranges))


def test_the_whole_ring() -> None:
    assert spans(WHOLE_RING) == spans([TokenRange(5, 5)]) == [Span(MINIMUM, MAXIMUM)]
    assert spans([]) == []


def test_what_is_no_token_is_refused() -> None:
    with pytest.raises(ValueError, match="is no range of tokens"):
        spans([TokenRange(0, MAXIMUM + 1)])
