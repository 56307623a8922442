"""Cuts the rows that a node sends of a large table into parts by tokens. Each part has its own links to SSTables, and
keeps them until it is sent.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_storage.formats.primitives.token_ranges import Span


def share_done(owned: Sequence[Span], token: int | None) -> float:
    """The share of the owned tokens that lie at or before a token; None: none of them."""
    total = _count(owned)
    if token is None or not total:
        return 0.0
    return _passed(owned, token) / total


def part_end(
    owned: Sequence[Span], sent: Sequence[Span], done_to: int | None, file_bytes: int, part_bytes: float
) -> int | None:
    """The last token of the part after `done_to` (None: from the first token on); None if it is all that is left.

    The tokens that are left are cut into equal parts of at most `part_bytes`, if data is spread evenly. `owned`: the
    tokens that the SSTables of `file_bytes` have; `sent`: those of them that are sent. part_bytes 0: one part.
    """
    passed = 0 if done_to is None else _passed(sent, done_to)
    left = _count(sent) - passed
    if not part_bytes or not left:
        return None
    parts = ceil(file_bytes * left / _count(owned) / part_bytes)
    if parts <= 1 or left < parts:
        return None
    return _token_at(sent, passed + left // parts)


def _count(tokens: Sequence[Span]) -> int:
    return sum(last - first + 1 for first, last in tokens)


def _passed(tokens: Sequence[Span], token: int) -> int:
    """Return how many of the tokens lie at or before `token`."""
    return sum(min(last, token) - first + 1 for first, last in tokens if first <= token)


def _token_at(tokens: Sequence[Span], number: int) -> int:
    """The one of that number, from 1 on."""
    for first, last in tokens:
        if number <= last - first + 1:
            return first + number - 1
        number -= last - first + 1
    raise ValueError("there are fewer tokens")
