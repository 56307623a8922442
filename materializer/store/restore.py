"""Bringing a local state to the committed version: by changelogs alone where that can be, else from a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from materializer.fault_points import FaultPoint, reach
from materializer.store.checkpoints import GoneError
from materializer.store.versions import NOTHING, MissingVersionError, plan_restore

if TYPE_CHECKING:
    from materializer.store.checkpoints import PartitionHistory
    from materializer.store.rocksdb import State


def restore(state: State, history: PartitionHistory, committed: str) -> None:
    """CdcError(STATE_DAMAGED), with the file, where the committed version cannot be reached; never another version."""
    if state.version != committed:
        try:
            _restore(state, history, committed)
        except GoneError:  # deleted since it was listed; a newer snapshot is there then
            try:
                _restore(state, history, committed)
            except GoneError as error:
                raise history.damaged(str(error), "it is missing") from error
    reach(FaultPoint.AFTER_RESTORE)


def _restore(state: State, history: PartitionHistory, committed: str) -> None:
    parents = history.parents()
    try:
        plan = plan_restore(committed, state.version if state.head else None, parents, history.snapshots())
    except MissingVersionError as error:
        raise history.missing_changelog(error.version) from error
    if plan.base == NOTHING and state.head is not None:
        state.replace(lambda _folder: None)
    elif plan.base != state.version:
        manifest = history.read_manifest(plan.base)
        origin = history.full_path(history.manifest_path(plan.base))
        state.replace(lambda folder: history.fetch_snapshot(manifest, folder), origin)
        if state.version != plan.base:
            raise history.damaged(history.manifest_path(plan.base), f"it holds version {state.version}")
    for version in plan.changelogs:
        reach(FaultPoint.IN_RESTORE)
        state.apply(history.read_changelog(version, parents[version]))
