"""Ranges of the Murmur3Partitioner's tokens (org.apache.cassandra.dht.Range)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

MINIMUM = -(1 << 63)  # Murmur3Partitioner.MINIMUM, before the token of any key that is not empty
MAXIMUM = (1 << 63) - 1


class TokenRange(NamedTuple):
    """Range: the tokens after `start` up to and including `end`. It wraps around where start >= end, so that a range of
    two equal tokens is the whole ring.
    """

    # The token before the first one.
    start: int
    # The last token.
    end: int


WHOLE_RING = (TokenRange(MINIMUM, MINIMUM),)


class Span(NamedTuple):
    """Consecutive tokens. No span wraps around."""

    # The first token, included.
    first: int
    # The last token, included.
    last: int


def spans(ranges: Iterable[TokenRange], first: int = MINIMUM) -> list[Span]:
    """The tokens of the ranges that are not below `first`, in order; spans neither overlap nor touch.

    ValueError for a token that is none.
    """
    unwrapped = sorted(span for token_range in ranges for span in _unwrapped(token_range))
    found: list[Span] = []
    for span in unwrapped:
        if span.last < first:
            continue
        start = max(span.first, first)
        if found and start <= found[-1].last + 1:
            found[-1] = Span(found[-1].first, max(found[-1].last, span.last))
        else:
            found.append(Span(start, span.last))
    return found


def _unwrapped(token_range: TokenRange) -> list[Span]:
    """Range.unwrap. A key that is empty has the token MINIMUM, which only a range that wraps around has."""
    start, end = token_range
    if not (MINIMUM <= start <= MAXIMUM and MINIMUM <= end <= MAXIMUM):
        raise ValueError(f"({start}, {end}] is no range of tokens")
    if start < end:
        return [Span(start + 1, end)]
    wrapped = [Span(MINIMUM, end)]
    return wrapped if start == MAXIMUM else [*wrapped, Span(start + 1, MAXIMUM)]
