"""State versions: their names, and which stored changelogs and snapshots lead to one.

A version is named `<sequence>-<random>`. Its sequence is its parent's plus one. The random part is needed because two
attempts at the same chunk create two versions, and at most one is ever committed. `parents` maps each version that
has a stored changelog to its parent; it comes from one listing of the changelogs' names.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

NOTHING = "0000000000-00000000"
"""The version of a state before its first changelog."""

_SNAPSHOTS_KEPT = 2  # a restore that started with the older one may still be running


class MissingVersionError(Exception):
    """`version` has no stored changelog and no snapshot, and the local store is not at it."""

    def __init__(self, version: str) -> None:
        super().__init__(version)
        self.version = version


class RestorePlan(NamedTuple):
    """The way to a version of a state."""

    # The version to start with: the local store's, a snapshot's or NOTHING.
    base: str
    # The changelogs to apply, in order.
    changelogs: list[str]


def next_version(parent: str) -> str:
    """A fresh name for a version after `parent`."""
    return f"{sequence(parent) + 1:010d}-{secrets.token_hex(4)}"


def sequence(version: str) -> int:
    return int(version.partition("-")[0])


def plan_restore(
    committed: str, local: str | None, parents: Mapping[str, str], snapshots: Iterable[str]
) -> RestorePlan:
    """Plan how to reach `committed`: from the local store if its version is an ancestor, otherwise from the newest
    snapshot that is one.

    `local` is None if the local store is empty. MissingVersionError if neither leads there.
    """
    available = set(snapshots)
    snapshot: str | None = None
    path: list[str] = []
    from_snapshot: list[str] = []
    for version in _ancestors(committed, parents):
        if version == local:
            return RestorePlan(version, path[::-1])
        if snapshot is None and (version in available or version == NOTHING):
            snapshot, from_snapshot = version, path[::-1]
        path.append(version)
    if snapshot is None:
        raise MissingVersionError(path[-1])
    return RestorePlan(snapshot, from_snapshot)


def oldest_kept_snapshot(committed: str, snapshots: Iterable[str]) -> int:
    """The sequence number below which snapshots can be deleted; 0 while all are needed.

    Snapshots are of committed versions only. The result is safe even if the task's successor has committed more: the
    second newest snapshot that the task knows is older than the successor's second newest.
    """
    known = sorted(
        (sequence(version) for version in snapshots if sequence(version) <= sequence(committed)), reverse=True
    )
    return known[_SNAPSHOTS_KEPT - 1] if len(known) >= _SNAPSHOTS_KEPT else 0


def newest_unneeded_changelog(
    committed: str, snapshots: Iterable[str], kept_versions: int, young: Iterable[str]
) -> int:
    """The sequence number up to which changelogs can be deleted; -1 while all are needed.

    Needed are those after the oldest kept snapshot, the last `kept_versions`, and those in `young`, kept for their age.
    """
    oldest_kept = oldest_kept_snapshot(committed, snapshots)
    if not oldest_kept:
        return -1
    oldest_young = min(map(sequence, young), default=oldest_kept + 1)
    return min(oldest_kept, sequence(committed) - kept_versions, oldest_young - 1)


def _ancestors(version: str, parents: Mapping[str, str]) -> Iterator[str]:
    """The version, its parent and so on, as far as changelogs are stored."""
    yield version
    while version in parents:
        version = parents[version]
        yield version
