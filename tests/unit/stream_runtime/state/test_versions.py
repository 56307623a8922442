"""Which changelogs and snapshots lead to a version, and which can go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_runtime.state.versions import (
    NOTHING,
    MissingVersionError,
    newest_unneeded_changelog,
    next_version,
    oldest_kept_snapshot,
    plan_restore,
    sequence,
)

if TYPE_CHECKING:
    import random


def a_chain(length: int) -> list[str]:
    chain = [NOTHING]
    while len(chain) <= length:
        chain.append(next_version(chain[-1]))
    return chain


def parents_of(chain: list[str]) -> dict[str, str]:
    return dict(zip(chain[1:], chain, strict=False))


@given(st.integers(0, 12), st.data())
def test_a_plan_ends_at_the_committed_version_by_the_nearest_start(length: int, data: st.DataObject) -> None:
    chain = a_chain(length)
    parents = parents_of(chain)
    strays = {next_version(parent): parent for parent in data.draw(st.lists(st.sampled_from(chain), max_size=4))}
    snapshots = data.draw(st.sets(st.sampled_from(chain[1:]), max_size=4)) if length else set()
    local = data.draw(st.none() | st.sampled_from([*chain, *strays]))
    plan = plan_restore(chain[-1], local, {**parents, **strays}, snapshots)
    assert [plan.base, *plan.changelogs] == chain[chain.index(plan.base) :]
    starts = [chain.index(snapshot) for snapshot in (snapshots | {NOTHING})]
    assert plan.base == (local if local in chain else chain[max(starts)])


@given(st.integers(1, 12), st.data())
def test_without_a_changelog_it_is_missing_or_not_needed(length: int, data: st.DataObject) -> None:
    chain = a_chain(length)
    parents = parents_of(chain)
    gone = data.draw(st.sampled_from(chain[1:]))
    del parents[gone]
    start = data.draw(st.sampled_from(chain))
    if chain.index(start) >= chain.index(gone):
        assert plan_restore(chain[-1], None, parents, {start}).base == start
    else:
        with pytest.raises(MissingVersionError) as raised:
            plan_restore(chain[-1], None, parents, {start} - {NOTHING})
        assert raised.value.version == gone


@given(st.integers(0, 15), st.integers(0, 15), st.integers(1, 6), st.sets(st.integers(1, 30)), st.randoms())
def test_cleaning_up_late_never_takes_what_a_later_version_needs(
    length: int, further: int, kept: int, snapshot_numbers: set[int], choice: random.Random
) -> None:
    chain = a_chain(length + further)
    committed = chain[length]
    parents = parents_of(chain)
    strays = {next_version(chain[i]): chain[i] for i in range(len(chain)) if choice.random() < 0.3}
    snapshots = {chain[number] for number in snapshot_numbers if number < len(chain)}
    young = {version for version in chain[1:] if choice.random() < 0.1}
    unneeded = newest_unneeded_changelog(committed, snapshots, kept, young)
    left = {version: parent for version, parent in parents.items() if sequence(version) > unneeded}
    oldest = oldest_kept_snapshot(committed, snapshots)
    for goal in chain[length:]:
        plan_restore(
            goal, None, {**left, **strays}, {snapshot for snapshot in snapshots if sequence(snapshot) >= oldest}
        )
    recent = {version for version in chain[1:] if sequence(version) > sequence(committed) - kept}
    assert left.keys() >= recent | young


def test_old_changelogs_and_snapshots_go() -> None:
    chain = a_chain(20)
    snapshots = {chain[5], chain[10], chain[15]}
    assert oldest_kept_snapshot(chain[20], snapshots) == 10
    assert newest_unneeded_changelog(chain[20], snapshots, 3, []) == 10
    assert newest_unneeded_changelog(chain[20], snapshots, 13, []) == 7
    assert newest_unneeded_changelog(chain[20], snapshots, 3, chain[5:]) == 4
    assert oldest_kept_snapshot(chain[9], snapshots) == 0
    assert newest_unneeded_changelog(chain[9], snapshots, 3, []) == -1
