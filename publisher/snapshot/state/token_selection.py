"""Describe which part of a table a snapshot sends: all that a node owns, some tokens, or what it is the primary replica
of; and which Cassandra partitions a repair asks for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.primitives.token_ranges import MAXIMUM, MINIMUM, Span, TokenRange, spans
from cdc_common.node.snapshot_rows import RepairRequest, parse_repair

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_PRIMARY = "primary"
_SPAN = re.compile(r"(-?\d+)(?::(-?\d+))?")


class TokenSelection(NamedTuple):
    """The tokens of a table that a snapshot sends."""

    # these alone; () for all
    tokens: tuple[Span, ...] = ()
    # Only the ranges with the node as their primary replica in its datacenter, as for `nodetool repair -pr`.
    is_primary: bool = False
    # The messages replace these Cassandra partitions.
    repair: RepairRequest | None = None

    def __str__(self) -> str:
        """Return the text that records and rows store and `parse` reads."""
        if self.repair is not None:
            return str(self.repair)
        return " ".join([*[_PRIMARY] * self.is_primary, *(f"{first}:{last}" for first, last in self.tokens)])

    def of(self, owned: Iterable[TokenRange]) -> list[TokenRange]:
        """The tokens of `owned` that are in the portion."""
        if not self.tokens:
            return list(owned)
        found = []
        for span in spans(owned):
            for wanted in self.tokens:
                first, last = max(span.first, wanted.first), min(span.last, wanted.last)
                if first <= last:
                    found.append(TokenRange(MAXIMUM if first == MINIMUM else first - 1, last))
        return found


WHOLE = TokenSelection()


def parse(text: str) -> TokenSelection:
    """Parse the text that str gives of a TokenSelection. ValueError."""
    repair = parse_repair(text)
    if repair is not None:
        tokens = sorted({decorated_token(key) for key in repair.keys})
        return TokenSelection(tuple(Span(token, token) for token in tokens), repair=repair)
    words = text.split()
    is_primary = words[:1] == [_PRIMARY]
    return TokenSelection(parse_tokens(words[is_primary:]), is_primary)


def parse_tokens(texts: Sequence[str]) -> tuple[Span, ...]:
    """Parse texts of the form `TOKEN`, or `FIRST:LAST` with both included. ValueError, which names the text."""
    found = []
    for text in texts:
        matched = _SPAN.fullmatch(text)
        if matched is None:
            raise ValueError(f"{text!r} is neither a token nor FIRST:LAST")
        first = int(matched[1])
        last = first if matched[2] is None else int(matched[2])
        if not MINIMUM <= first <= last <= MAXIMUM:
            raise ValueError(f"{text!r} is no range of tokens: FIRST may not be above LAST, and both have 64 bits")
        found.append(Span(first, last))
    return tuple(found)
