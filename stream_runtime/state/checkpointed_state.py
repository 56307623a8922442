"""The state of one source partition: the local store, and the checkpoints that it is restored from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_runtime.state.restore import restore
from stream_runtime.state.snapshots import Snapshots, at_once
from stream_runtime.state.versions import NOTHING

if TYPE_CHECKING:
    from stream_runtime.state.changelog import Changelog, Head
    from stream_runtime.state.checkpoints import CheckpointStore
    from stream_runtime.state.rocksdb import LocalStore
    from stream_runtime.state.snapshots import Run, StateSettings


class CheckpointedState:
    """`local` is the state to read; it changes only by `restore_to` and `apply`. run: how snapshots are uploaded."""

    def __init__(
        self, local: LocalStore, checkpoints: CheckpointStore, settings: StateSettings, run: Run = at_once
    ) -> None:
        self.local = local
        self._checkpoints = checkpoints
        self._snapshots = Snapshots(local, checkpoints, settings, run)
        self._has_committed = False

    @property
    def head(self) -> Head | None:
        return self.local.head

    def is_stored(self) -> bool:
        """Whether any attempt has ever stored a version: a changelog or, after a reshard, only a snapshot."""
        return self._checkpoints.newest_version() != NOTHING

    def restore_to(self, version: str) -> None:
        """Bring the local store to a committed version. CdcError(STATE_DAMAGED) if it cannot be reached."""
        restore(self.local, self._checkpoints, version)

    def store_changelog(self, changelog: Changelog) -> None:
        """Store a changelog. CdcError(CHECKPOINT_LOCATION) if the location refuses it, or takes too long."""
        self._checkpoints.write_changelog(changelog)

    def apply(self, changelog: Changelog) -> None:
        """Bring the local store, which is at the changelog's parent, to its version, which this attempt has
        committed.
        """
        self._has_committed = True
        self.local.apply(changelog)

    def store_snapshot_if_due(self, version: str) -> None:
        """Call Snapshots.store_if_due, but not for a version that an older attempt has committed: that one may be
        storing the same snapshot, and its clean-up deletes the files of that version that it does not know.
        """
        if self._has_committed:
            self._snapshots.store_if_due(version)

    def close(self) -> None:
        self._snapshots.close()
        self.local.close()
