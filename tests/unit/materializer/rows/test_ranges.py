"""Range tombstones, in memory and stored."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.rows.deletion import LIVE, DeletionTime
from materializer.rows.keys import partition_prefix
from materializer.rows.overlay import Overlay
from materializer.rows.range_tombstones import PartitionRanges
from materializer.rows.ranges import DeletedRange, add_range
from materializer.rows.timers import Timers
from tests.support.materializer.memory_state import MemoryState

PREFIX = partition_prefix(b"k")
SPACE = [bytes([byte]) for byte in range(12)]


@st.composite
def deleted_ranges(draw: st.DrawFn) -> DeletedRange:
    first, last = sorted(draw(st.lists(st.sampled_from(SPACE), min_size=2, max_size=2, unique=True)))
    return DeletedRange(first, last, DeletionTime(draw(st.integers(1, 4)), draw(st.integers(1, 2))))


@given(st.lists(deleted_ranges(), max_size=8))
def test_each_point_is_covered_by_the_superseding_range(added: list[DeletedRange]) -> None:
    ranges: list[DeletedRange] = []
    for new in added:
        ranges = add_range(ranges, new)
    assert all(left.last <= right.first for left, right in itertools.pairwise(ranges))
    for point in SPACE:
        expected = max((one.deletion for one in added if one.first <= point < one.last), default=LIVE)
        assert deletion_at(ranges, point) == expected


@given(st.permutations(range(5)), st.lists(deleted_ranges(), min_size=5, max_size=5))
def test_the_order_in_which_ranges_come_does_not_matter(order: list[int], added: list[DeletedRange]) -> None:
    straight: list[DeletedRange] = []
    permuted: list[DeletedRange] = []
    for index in range(5):
        straight = add_range(straight, added[index])
        permuted = add_range(permuted, added[order[index]])
    assert straight == permuted


@given(st.lists(deleted_ranges(), max_size=12), st.integers(2, 5), st.data())
def test_stored_ranges_are_those_in_memory(added: list[DeletedRange], most: int, data: st.DataObject) -> None:
    """Whatever number is merged in one step, and whatever is already stored."""
    state = MemoryState()
    ranges: list[DeletedRange] = []
    for new in added:
        ranges = add_range(ranges, new)
        overlay = Overlay(state)
        stored = PartitionRanges(overlay, Timers(overlay), PREFIX)
        for part in (new, data.draw(st.sampled_from(added))):
            ranges = add_range(ranges, part)
            first = part.first
            while first < part.last:
                first, _ = stored.add(part._replace(first=first), most)
            assert [stored.covering(point) for point in SPACE] == [deletion_at(ranges, point) for point in SPACE]
        assert list(stored) == ranges
        assert stored.is_empty == (not ranges)
        state.apply(overlay.writes)


def deletion_at(ranges: list[DeletedRange], point: bytes) -> DeletionTime:
    return next((deleted.deletion for deleted in ranges if deleted.first <= point < deleted.last), LIVE)
