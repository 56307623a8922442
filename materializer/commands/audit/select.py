"""Reads the rows of a span of tokens by SELECT, and splits what cannot be read at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cassandra_storage.formats.primitives.token_ranges import Span
from cdc_common.clients.cassandra import PageUnreadableError, RawPage
from materializer.commands.audit.spans import divide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cdc_common.program.pace import Pace
    from materializer.commands.audit.shown import AuditedTable, SelectedUnit

_LEAST_PAGE_ROWS = 10
_MOST_FAILURES = 128  # of a span: then the rest of it is given up
_TIMEOUT_WEIGHT = 8  # a timeout takes as long as many other failures


class PageReader(Protocol):
    """cdc_common.clients.cassandra.RawReader."""

    def page(self, query: str, values: Sequence[bytes], page_rows: int, following: bytes | None = None) -> RawPage: ...


class Unread(NamedTuple):
    """Tokens that could not be read."""

    # The tokens.
    span: Span
    # Why they could not be read.
    reason: str
    # Whether some rows of the first token were read before.
    begun: bool = False


class SelectedUnits:
    """Reads one span by SELECT: yields its units in the order of tokens, keys and units, and the tokens that cannot be
    read.

    rows: the number of rows read.
    """

    def __init__(self, table: AuditedTable, reader: PageReader, page_rows: int, pace: Pace) -> None:
        self.rows = 0
        self._table = table
        self._query = table.range_query()
        self._reader = reader
        self._page_rows = page_rows
        self._pace = pace
        self._failures = 0

    def read(self, span: Span, clock: Callable[[], float] = time.time) -> Iterator[SelectedUnit | Unread]:
        """clock: s since the epoch. CdcError if Cassandra cannot be reached or refuses the statement."""
        self._failures = 0
        left = [_Walk(span)]
        while left:
            walk = left.pop()
            if self._failures >= _MOST_FAILURES:
                yield Unread(walk.span, "too many failed reads before it", begun=walk.last is not None)
                continue
            try:
                yield from self._walk(walk, clock)
            except PageUnreadableError as error:
                first, last = walk.span
                if first == last:
                    yield Unread(walk.span, error.reason, begun=walk.last is not None)
                elif walk.last is None:
                    left += [_Walk(half) for half in reversed(divide(walk.span, 2))]
                else:  # the rest of the Cassandra partition that it was in, and what comes after it
                    token = walk.last[0]
                    left += [_Walk(Span(token + 1, last))] if token < last else []
                    left.append(_Walk(Span(token, token), walk.last))

    def _walk(self, walk: _Walk, clock: Callable[[], float]) -> Iterator[SelectedUnit]:
        """All pages. A page that cannot be read is tried again with fewer rows, unless the span can be split first."""
        page_rows = self._page_rows
        following: bytes | None = None
        values = [token.to_bytes(8, "big", signed=True) for token in walk.span]
        while True:
            try:
                page = self._reader.page(self._query, values, page_rows, following)
            except PageUnreadableError as error:
                self._failures += _TIMEOUT_WEIGHT if error.reason == "timeout" else 1
                can_split = walk.last is None and walk.span.first < walk.span.last
                if can_split or page_rows <= _LEAST_PAGE_ROWS or self._failures >= _MOST_FAILURES:
                    raise
                page_rows = max(_LEAST_PAGE_ROWS, page_rows // 8)
                continue
            second = int(clock())
            for row in page.rows:
                self.rows += 1
                for unit in self._table.selected_units(row, second):
                    place = unit.token, unit.partition_key, unit.unit
                    if walk.last is None or place > walk.last:  # not read before, as the statics of each row are
                        walk.last = place
                        yield unit
            self._pace.wait(len(page.rows))
            if page.following is None:
                return
            following = page.following
            page_rows = min(self._page_rows, page_rows * 2)


class _Walk:
    """The progress in a span. last: the place of the last unit, (token, partition key, unit); None before the first.
    Another walk has read what is before it.
    """

    def __init__(self, span: Span, last: tuple[int, bytes, bytes] | None = None) -> None:
        self.span = span
        self.last = last
