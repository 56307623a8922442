"""Opens what is needed to work on a share with a state: its commit protocol, then its state."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from stream_runtime.exactly_once.resources import Resources
from stream_runtime.fault_points import FaultPoint, Point
from stream_runtime.faults import NEUTRAL_FAULTS, Faults
from stream_runtime.kafka import PRODUCER_DEFAULTS
from stream_runtime.kafka.commits import GroupOffsets, KafkaCommits
from stream_runtime.state.checkpoint_location import LocationSettings, VersionSettings, object_store, state_settings
from stream_runtime.state.checkpointed_state import CheckpointedState
from stream_runtime.state.checkpoints import CheckpointStore
from stream_runtime.state.rocksdb import open_local_store
from stream_runtime.state.snapshots import Run, at_once

if TYPE_CHECKING:
    from pathlib import Path

    from cdc_common.settings import KafkaSettings
    from stream_runtime.records import Share


class StateJobSettings(LocationSettings, VersionSettings, Protocol):
    """The settings of a job whose shares have states."""

    @property
    def group_id(self) -> str: ...
    @property
    def state_directory(self) -> Path: ...


class Opening(NamedTuple):
    """A job's own choices when it opens a share."""

    # Makes the errors, in the job's words.
    faults: Faults = NEUTRAL_FAULTS
    # How snapshots are uploaded.
    upload: Run = at_once
    # The smallest limit of the topics that are sent to.
    max_message_bytes: int = PRODUCER_DEFAULTS.max_message_bytes
    # As open_local_store's.
    old_value_seconds: float | None = None
    # The fault point between sending a position and committing it.
    before_commit: Point = FaultPoint.AFTER_SEND_OFFSETS


def open_resources(
    kafka: KafkaSettings, settings: StateJobSettings, share: Share, positions: GroupOffsets, opening: Opening
) -> Resources:
    """Fence every earlier owner of the share, which has one partition, and open its state."""
    limits = PRODUCER_DEFAULTS._replace(
        transaction_seconds=settings.transaction_timeout_seconds, max_message_bytes=opening.max_message_bytes
    )
    # First of all: the position that is read afterwards includes the last commit of the former task.
    commits = KafkaCommits(kafka, settings.group_id, share, positions, limits, before_commit=opening.before_commit)
    checkpoints = CheckpointStore(object_store(settings), settings.group_id, share.partition, opening.faults)
    folder = state_folder(settings) / str(share.partition)
    local = open_local_store(folder, opening.old_value_seconds)  # the last one that may fail: it holds a lock
    return Resources(commits, CheckpointedState(local, checkpoints, state_settings(settings), opening.upload))


def state_folder(settings: StateJobSettings) -> Path:
    """The folder of the group's local states."""
    return settings.state_directory / settings.group_id
