"""One filler writes for all, what the neediest lacks."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from filler.election import Member, share

members = st.lists(
    st.builds(Member, st.uuids(), st.integers(0, 1 << 25), st.sampled_from(["", "", "", "disk"])),
    min_size=1,
    max_size=5,
    unique_by=lambda member: member.host_id,
)


@given(members)
def test_one_writes_what_the_neediest_lacks_and_none_while_one_is_held(among: list[Member]) -> None:
    shares = sorted(share(member.host_id, among) for member in among)
    assert shares[:-1] == [0] * (len(among) - 1)
    is_held = any(member.held for member in among)
    assert shares[-1] == (0 if is_held else max(member.lacking for member in among))


def test_the_lowest_host_id_writes_and_its_successor_when_it_is_gone() -> None:
    low, high = Member(UUID(int=1), 5, ""), Member(UUID(int=1 << 127), 9, "")
    assert share(low.host_id, [high, low]) == 9
    assert share(high.host_id, [high, low]) == 0
    assert share(high.host_id, [high]) == 9
