"""The checkpoint location of a job's settings, and how long what is in it is kept."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

from stream_runtime.state.checkpoints import RetentionSettings
from stream_runtime.state.object_store import ObjectStore
from stream_runtime.state.snapshots import StateSettings

_ANSWER_SHARE = 0.75  # of a transaction's timeout, for which a worker waits for the checkpoint location


class LocationSettings(Protocol):
    """The settings of a job whose states are in a checkpoint location."""

    @property
    def checkpoint_location(self) -> str: ...
    @property
    def transaction_timeout_seconds(self) -> float: ...
    @property
    def restore_reads(self) -> int: ...


class VersionSettings(Protocol):
    """The settings of a job that say how many versions of a state are kept."""

    @property
    def snapshot_every_versions(self) -> int: ...
    @property
    def changelog_retention_versions(self) -> int: ...
    @property
    def changelog_retention_seconds(self) -> float: ...


def object_store(settings: LocationSettings) -> ObjectStore:
    """The checkpoint location. One object a process, which counts the process's traffic."""
    seconds = settings.transaction_timeout_seconds * _ANSWER_SHARE
    return _object_store(settings.checkpoint_location, seconds, settings.restore_reads)


@lru_cache(maxsize=4)
def _object_store(location: str, answer_seconds: float, reads: int) -> ObjectStore:
    return ObjectStore(location, answer_seconds, reads)


def state_settings(settings: VersionSettings) -> StateSettings:
    """When snapshots are stored, and which changelogs are kept."""
    retention = RetentionSettings(settings.changelog_retention_versions, settings.changelog_retention_seconds)
    return StateSettings(settings.snapshot_every_versions, retention)
