"""Merges the range tombstone markers of several sources into one series, and turns markers into ranges
(org.apache.cassandra.db.rows.RangeTombstoneMarker.Merger).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.clustering import ClusteringBound, Kind
from cassandra_storage.formats.rows.deletion import LIVE, DeletionTime, RangeTombstone
from cassandra_storage.formats.rows.unfiltered import Marker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cassandra_storage.formats.rows.unfiltered import Unfiltered

_BEFORE = (Kind.EXCL_END_BOUND, Kind.INCL_START_BOUND)  # comparedToClustering < 0


class RangeMerger:
    """The markers of one partition, place by place: `add` all markers of one place, then take `merged`.

    `active`: what is deleted after the last place that was merged.
    """

    __slots__ = ("_bound", "_opened", "_partition_deletion", "_range", "active")

    def __init__(self, partition_deletion: DeletionTime) -> None:
        self._partition_deletion = partition_deletion
        self._opened: dict[int, DeletionTime] = {}
        self._bound: ClusteringBound | None = None
        self._range = LIVE
        self.active = partition_deletion

    def add(self, source: int, marker: Marker) -> None:
        """A marker of that source. FormatError if it does not close what the source has open."""
        close, open_ = marker
        opened = self._opened.pop(source, None)
        if opened != (None if close is None else close[1]):
            raise FormatError("a range tombstone is closed that was not opened, or opened twice")
        if open_ is not None:
            self._opened[source] = open_[1]
            self._bound = open_[0]
        else:
            assert close is not None
            self._bound = close[0]

    def merged(self) -> Marker | None:
        """The marker at the place of those that were added; None if nothing changes there."""
        assert self._bound is not None
        before, kind, values = self._range, self._bound.kind, self._bound.values
        after = max(self._opened.values(), default=LIVE)  # supersedes is the order of the tuples, except for LIVE
        if not after.supersedes(self._partition_deletion):
            after = LIVE
        if after == before:
            return None
        self._range = after
        self.active = self._partition_deletion if after is LIVE else after
        is_before = kind in _BEFORE
        close = open_ = None
        if before is not LIVE:
            close = ClusteringBound(Kind.EXCL_END_BOUND if is_before else Kind.INCL_END_BOUND, values), before
        if after is not LIVE:
            open_ = ClusteringBound(Kind.INCL_START_BOUND if is_before else Kind.EXCL_START_BOUND, values), after
        return Marker(close, open_)

    def end(self) -> None:
        """Check the end: FormatError if a source has not closed its last range."""
        if self._opened:
            raise FormatError("a range tombstone is not closed")


def with_ranges(unfiltereds: Iterable[Unfiltered]) -> Iterator[RangeTombstone | Unfiltered]:
    """Rows as they are, and each range in place of its markers, where it ends: after the rows that it covers."""
    start: ClusteringBound | None = None
    for one in unfiltereds:
        if not isinstance(one, Marker):
            yield one
            continue
        if one.close is not None:
            assert start is not None
            yield RangeTombstone(start, *one.close)
        start = None if one.open_ is None else one.open_[0]
