"""State versions: their names, and which of the stored changelogs and snapshots lead to one.

A version is named `<sequence>-<random>`: one more than its parent's sequence, and a random part because two attempts
at the same chunk make two versions, of which at most one is ever committed. `parents` maps each version that has a
stored changelog to its parent: one listing of the changelogs' names.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

NOTHING = "0000000000-00000000"
"""The version of a state before its first changelog."""

_SNAPSHOTS_KEPT = 2  # a restore that began with the older one may still be running


class MissingVersionError(Exception):
    """No changelog of `version` is stored, and neither a snapshot nor the local state is of it."""

    def __init__(self, version: str) -> None:
        super().__init__(version)
        self.version = version


class RestorePlan(NamedTuple):
    """Start with `base` (the local state's version, a snapshot's or NOTHING), then apply the changelogs in order."""

    base: str
    changelogs: list[str]


class Garbage(NamedTuple):
    """Versions whose changelogs and whose snapshots can go."""

    changelogs: list[str]
    snapshots: list[str]


def next_version(parent: str) -> str:
    """A fresh name for a version after `parent`."""
    return f"{sequence(parent) + 1:010d}-{secrets.token_hex(4)}"


def sequence(version: str) -> int:
    return int(version.partition("-")[0])


def plan_restore(
    committed: str, local: str | None, parents: Mapping[str, str], snapshots: Iterable[str]
) -> RestorePlan:
    """How to come to `committed`: from the local state if it is an ancestor, else from the newest snapshot that is one.

    `local` is None where there is no local state. MissingVersionError where neither leads there.
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


def garbage(committed: str, parents: Mapping[str, str], snapshots: Iterable[str], kept_versions: int) -> Garbage:
    """What neither `committed` nor any version after it needs.

    It stays safe when it is computed by a task whose successor has committed further: only what is older than two
    snapshots on the committed version's own chain can go, and a successor's chain holds both.
    """
    available = set(snapshots)
    on_chain = [version for version in _ancestors(committed, parents) if version in available]
    if len(on_chain) < _SNAPSHOTS_KEPT:
        return Garbage([], [])
    oldest_kept = sequence(on_chain[_SNAPSHOTS_KEPT - 1])
    newest_unneeded = min(oldest_kept, sequence(committed) - kept_versions)
    return Garbage(
        sorted(version for version in parents if sequence(version) <= newest_unneeded),
        sorted(version for version in available if sequence(version) < oldest_kept),
    )


def _ancestors(version: str, parents: Mapping[str, str]) -> Iterator[str]:
    """The version, its parent and so on, as far as changelogs are stored."""
    yield version
    while version in parents:
        version = parents[version]
        yield version
