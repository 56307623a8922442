"""Restoring a local store to the committed version: by changelogs alone if possible, otherwise from a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_runtime.fault_points import FaultPoint, reach
from stream_runtime.state.object_store import MissingFileError
from stream_runtime.state.versions import NOTHING, MissingVersionError, plan_restore

if TYPE_CHECKING:
    from stream_runtime.state.checkpoints import CheckpointStore
    from stream_runtime.state.rocksdb import LocalStore


def restore(local: LocalStore, checkpoints: CheckpointStore, committed: str) -> None:
    """Bring the local store to the version `committed`, never to another one.

    CdcError(STATE_DAMAGED), with the file's name, if that version cannot be reached.
    """
    if local.version != committed:
        try:
            _restore(local, checkpoints, committed)
        except MissingFileError:  # deleted since it was listed: there is a newer snapshot now
            try:
                _restore(local, checkpoints, committed)
            except MissingFileError as error:
                raise checkpoints.damaged(str(error), "it is missing") from error
    reach(FaultPoint.AFTER_RESTORE)


def _restore(local: LocalStore, checkpoints: CheckpointStore, committed: str) -> None:
    parents = checkpoints.parents()
    try:
        plan = plan_restore(committed, local.version if local.head else None, parents, checkpoints.snapshots())
    except MissingVersionError as error:
        raise checkpoints.missing_changelog(error.version) from error
    if plan.base == NOTHING and local.head is not None:
        local.replace(lambda _folder: None)
    elif plan.base != local.version:
        manifest = checkpoints.read_manifest(plan.base)
        origin = checkpoints.full_path(checkpoints.manifest_path(plan.base))
        local.replace(lambda folder: checkpoints.fetch_snapshot(manifest, folder), origin)
        if local.version != plan.base:
            raise checkpoints.damaged(checkpoints.manifest_path(plan.base), f"it holds version {local.version}")
    for entry in checkpoints.read_changelogs((version, parents[version]) for version in plan.changelogs):
        reach(FaultPoint.IN_RESTORE)
        local.apply(entry)
