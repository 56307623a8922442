"""Stores snapshots of a source partition's state from time to time, and deletes what they replace.

The task takes a copy of the local state, which costs little: hard links. A thread uploads it, and the task folds on.
For the checkpoint location, an upload whose task has ended counts as one of an older attempt
(stream_runtime.state.checkpoints).
"""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import structlog

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.fault_points import FaultPoint, reach
from stream_runtime.state.checkpoints import RetentionSettings
from stream_runtime.state.deadline import in_thread
from stream_runtime.state.object_store import MissingFileError
from stream_runtime.state.versions import NOTHING, sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from stream_runtime.state.checkpoints import CheckpointStore, Manifest
    from stream_runtime.state.rocksdb import LocalCopy, LocalStore


Run: TypeAlias = "Callable[[Callable[[], None]], Future[None]]"
_logger = structlog.get_logger(__name__)
_CLEAN_UPS_IN_RETENTION = 10  # of changelogs, in the time that they are kept
_UPLOADS_AT_ONCE = 2  # of a process; each has a file in memory
_uploads = threading.BoundedSemaphore(_UPLOADS_AT_ONCE)


class StateSettings(NamedTuple):
    """The settings of stored states."""

    # How many changelogs there are from one snapshot to the next.
    snapshot_every_versions: int
    # How long changelogs are kept.
    changelogs_kept: RetentionSettings


class _EndedError(Exception):
    """The task has ended, and no longer waits for its snapshot."""


def at_once(call: Callable[[], None]) -> Future[None]:
    """Make the call now."""
    future = Future[None]()
    call()
    future.set_result(None)
    return future


def in_background(call: Callable[[], None]) -> Future[None]:
    """Make the call in a thread, when fewer uploads are under way in this process than may be."""

    def wait_and_call() -> None:
        with _uploads:
            call()

    return in_thread(wait_and_call)


class Snapshots:
    """run: how uploads are run, `at_once` or `in_background`.

    What cannot be stored now is stored later: until then the changelogs are kept.
    """

    def __init__(self, local: LocalStore, checkpoints: CheckpointStore, settings: StateSettings, run: Run) -> None:
        self._local = local
        self._checkpoints = checkpoints
        self._settings = settings
        self._run = run
        self._running: Future[None] | None = None
        self._ended = threading.Event()
        self._newest: Manifest | None = None
        self._is_own = False
        self._is_listed = False
        self._tried = NOTHING
        self._changelogs_cleaned = -math.inf

    def store_if_due(self, version: str) -> None:
        """Begin to store a snapshot of `version`, which must be committed and the local store's, if the newest one is
        old enough; then clean up. An unexpected error of the upload before is raised here.
        """
        if self._running is not None:
            if not self._running.done():
                return
            ended, self._running = self._running, None
            ended.result()
        if not self._is_listed:
            self._running = self._run(partial(self._guard, self._list))
            if not self._running.done():
                return
        if self._is_due(version):
            # Not the same version twice: the first try may still write its manifest, over that of the second.
            self._tried = version
            copy = self._local.copy()
            self._running = self._run(partial(self._guard, partial(self._upload, version, copy)))

    def close(self) -> None:
        """A running upload ends between two files."""
        self._ended.set()

    def _is_due(self, version: str) -> bool:
        last = self._newest.version if self._newest else NOTHING
        is_old = sequence(version) - sequence(last) >= self._settings.snapshot_every_versions
        return self._is_listed and is_old and version != self._tried

    def _guard(self, step: Callable[[], None]) -> None:
        try:
            step()
        except _EndedError:
            return
        except (OSError, MissingFileError, CdcError) as error:
            if not self._ended.is_set():
                partition = str(self._checkpoints.partition)
                _logger.warning("snapshot not stored", partition=partition, error=str(error))

    def _list(self) -> None:
        """Find the newest snapshot. If it cannot be read, the next one replaces it."""
        stored = self._checkpoints.snapshots()
        try:
            self._newest = self._checkpoints.read_manifest(stored[-1]) if stored else None
        except CdcError as error:
            if error.code is not Code.STATE_DAMAGED:
                raise
            _logger.warning("snapshot damaged", partition=str(self._checkpoints.partition), error=str(error))
        self._is_listed = True

    def _upload(self, version: str, copy: LocalCopy) -> None:
        try:
            files = self._while_wanted(copy.files())
            self._newest = self._checkpoints.write_snapshot(version, files, self._newest, is_own=self._is_own)
            self._is_own = True
        finally:
            copy.remove()
        reach(FaultPoint.AFTER_SNAPSHOT)
        self._clean_up(version)

    def _while_wanted(self, files: Iterator[tuple[Path, str]]) -> Iterator[tuple[Path, str]]:
        for file in files:
            if self._ended.is_set():
                raise _EndedError
            yield file

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
