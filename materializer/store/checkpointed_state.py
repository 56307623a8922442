"""The state of one raw partition: the local store, and the checkpoints that it is restored from."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, NamedTuple

import structlog

from cdc_program.errors import CdcError, Code
from materializer.fault_points import FaultPoint, reach
from materializer.store.changelog import encode
from materializer.store.checkpoints import MissingFileError, RetentionSettings
from materializer.store.deadline import within
from materializer.store.restore import restore
from materializer.store.versions import NOTHING, sequence

if TYPE_CHECKING:
    from pathlib import Path

    from materializer.store.changelog import Changelog, Head
    from materializer.store.checkpoints import CheckpointStore, Manifest
    from materializer.store.rocksdb import LocalStore

_logger = structlog.get_logger(__name__)
_CLEAN_UPS_IN_RETENTION = 10  # of changelogs, in the time that they are kept


class StateSettings(NamedTuple):
    """snapshot_every_versions: how many changelogs there are from one snapshot to the next.
    upload_seconds: how long storing a changelog may take.
    """

    snapshot_every_versions: int
    changelogs_kept: RetentionSettings
    upload_seconds: float


class CheckpointedState:
    """`local` is the state to read; it changes only by `restore_to` and `apply`."""

    def __init__(self, local: LocalStore, checkpoints: CheckpointStore, settings: StateSettings) -> None:
        self.local = local
        self._checkpoints = checkpoints
        self._settings = settings
        self._snapshot: Manifest | None = None
        self._snapshot_is_own = False
        self._snapshots_listed = False
        self._changelogs_cleaned = -math.inf

    @property
    def head(self) -> Head | None:
        return self.local.head

    def has_changelogs(self) -> bool:
        """Whether any attempt has ever stored a changelog that is still there."""
        return bool(self._checkpoints.parents())

    def restore_to(self, version: str) -> None:
        """Bring the local store to a committed version. CdcError(STATE_DAMAGED) if it cannot be reached."""
        restore(self.local, self._checkpoints, version)

    def store_changelog(self, changelog: Changelog) -> None:
        """CdcError(CHECKPOINT_LOCATION) if the location refuses it, or takes too long."""
        encoded = encode(changelog)  # here: a thread's buffers are new memory each time, which costs as much again
        within(
            self._settings.upload_seconds,
            lambda: self._checkpoints.write_changelog(changelog, encoded),
            f"storing a changelog of {self._checkpoints.raw_partition}",
        )

    def apply(self, changelog: Changelog) -> None:
        """Bring the local store, which is at the changelog's parent, to its version."""
        self.local.apply(changelog)

    def store_snapshot_if_due(self, version: str) -> None:
        """Store a snapshot of `version`, which must be committed, if the newest one is old enough; then clean up.

        If it cannot be stored now, a later call does: until then the changelogs are kept.
        """
        try:
            if not self._snapshots_listed:
                self._snapshot = self._newest_snapshot()
                self._snapshots_listed = True
            last = self._snapshot.version if self._snapshot else NOTHING
            if sequence(version) - sequence(last) >= self._settings.snapshot_every_versions:
                self.local.checkpoint(lambda files: self._store_snapshot(version, files))
                reach(FaultPoint.AFTER_SNAPSHOT)
                self._clean_up(version)
        except (OSError, MissingFileError, CdcError) as error:
            _logger.warning("snapshot not stored", partition=str(self._checkpoints.raw_partition), error=str(error))

    def close(self) -> None:
        self.local.close()

    def _newest_snapshot(self) -> Manifest | None:
        """None if there is none, or none that can be read: the next one replaces it."""
        stored = self._checkpoints.snapshots()
        try:
            return self._checkpoints.read_manifest(stored[-1]) if stored else None
        except CdcError as error:
            if error.code is not Code.STATE_DAMAGED:
                raise
            _logger.warning("snapshot damaged", partition=str(self._checkpoints.raw_partition), error=str(error))
            return None

    def _store_snapshot(self, version: str, files: dict[Path, str]) -> None:
        self._snapshot = self._checkpoints.write_snapshot(version, files, self._snapshot, is_own=self._snapshot_is_own)
        self._snapshot_is_own = True

    def _clean_up(self, version: str) -> None:
        """Changelogs are not cleaned up after each snapshot: there may be many, and each clean-up lists them all."""
        now = time.monotonic()
        kept = self._settings.changelogs_kept
        if now - self._changelogs_cleaned >= kept.seconds / _CLEAN_UPS_IN_RETENTION:
            self._checkpoints.clean_up_changelogs(version, kept)
            self._changelogs_cleaned = now
        reach(FaultPoint.IN_CLEANUP)
        self._checkpoints.clean_up(version)
        reach(FaultPoint.AFTER_CLEANUP)
