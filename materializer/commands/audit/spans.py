"""The ring of tokens in parts: slices, which follow one another, and their spans, which tasks read. Pure."""

from __future__ import annotations

import bisect

from cassandra_storage.formats.primitives.token_ranges import MAXIMUM, MINIMUM, Span

_TOKENS = MAXIMUM - MINIMUM + 1


def divide(span: Span, count: int) -> list[Span]:
    """Divide the span into at most `count` spans of nearly the same size, in order."""
    first, last = span
    size = last - first + 1
    starts = sorted({first + size * number // count for number in range(count)})
    return [Span(start, end - 1) for start, end in zip(starts, [*starts[1:], last + 1], strict=True)]


def slices(count: int) -> list[Span]:
    """The whole ring."""
    return divide(Span(MINIMUM, MAXIMUM), count)


class SpanIndex:
    """Finds the span that has a token."""

    def __init__(self, spans: list[Span]) -> None:
        self._spans = spans
        self._starts = [span.first for span in spans]

    def find(self, token: int) -> int | None:
        """Return the number of the token's span; None if no span has the token."""
        number = bisect.bisect_right(self._starts, token) - 1
        return number if number >= 0 and token <= self._spans[number].last else None


def share_of_ring(span: Span) -> float:
    return (span.last - span.first + 1) / _TOKENS
