"""One filler writes for all nodes: what the neediest node needs."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from filler.election import Member, padding_to_write

members = st.lists(
    st.builds(Member, st.uuids(), st.integers(0, 1 << 25), st.sampled_from(["", "", "", "disk"])),
    min_size=1,
    max_size=5,
    unique_by=lambda member: member.host_id,
)


@given(members)
def test_one_writes_what_the_neediest_needs_and_none_while_one_is_paused(among: list[Member]) -> None:
    shares = sorted(padding_to_write(member.host_id, among) for member in among)
    assert shares[:-1] == [0] * (len(among) - 1)
    is_paused = any(member.paused for member in among)
    assert shares[-1] == (0 if is_paused else max(member.padding for member in among))


def test_the_lowest_host_id_writes_and_its_successor_when_it_is_gone() -> None:
    low, high = Member(UUID(int=1), 5, ""), Member(UUID(int=1 << 127), 9, "")
    assert padding_to_write(low.host_id, [high, low]) == 9
    assert padding_to_write(high.host_id, [high, low]) == 0
    assert padding_to_write(high.host_id, [high]) == 9
