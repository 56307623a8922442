"""Wiring: from settings to what works on a raw partition, and to the checkpoint location."""

from __future__ import annotations

import time
from contextlib import closing
from functools import lru_cache
from typing import TYPE_CHECKING

import structlog

from materializer.exactly_once.chunks import ChunkSettings
from materializer.exactly_once.partition_task import PartitionTask, TaskSettings
from materializer.exactly_once.resources import Resources
from materializer.exactly_once.rest import Tidying
from materializer.fault_points import FaultPoint, reach
from materializer.job.processor import fold_settings
from materializer.kafka import PRODUCER_DEFAULTS, GroupPositions, PartitionProducer, ProducerSettings
from materializer.store.checkpointed_state import CheckpointedState
from materializer.store.checkpoints import CheckpointStore, RetentionSettings
from materializer.store.object_store import ObjectStore
from materializer.store.restore import restore
from materializer.store.rocksdb import open_local_store
from materializer.store.snapshots import StateSettings, at_once
from materializer.store.unused import UnusedLimits, delete_unused

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from cdc_common.settings import KafkaSettings
    from materializer.job.plan import BatchPlan
    from materializer.records import RawPartition
    from materializer.settings import MaterializerSettings
    from materializer.store.rocksdb import LocalStore
    from materializer.store.snapshots import Run
    from materializer.store.unused import DiskUse

_logger = structlog.get_logger(__name__)
_UPLOAD_SHARE = 0.75  # of a transaction's timeout


def open_task(plan: BatchPlan, raw_partition: RawPartition, run: Run = at_once) -> PartitionTask:
    """A task that has fenced every other one of the raw partition. run: how it uploads snapshots."""
    reach(FaultPoint.BEFORE_INIT)
    return PartitionTask(raw_partition, open_resources(plan, raw_partition, run), task_settings(plan.materializer))


def open_resources(plan: BatchPlan, raw_partition: RawPartition, run: Run = at_once) -> Resources:
    """Open what is needed to work on a raw partition. This fences every earlier owner."""
    settings = plan.materializer
    positions = _positions(plan.kafka, settings.group_id)
    # The producer first: it fences the raw partition's former task. The position read afterwards includes its last
    # commit.
    topic = plan.topics.get(raw_partition.topic)
    producer_settings = ProducerSettings(
        settings.transaction_timeout_seconds,
        PRODUCER_DEFAULTS.max_message_bytes if topic is None else topic.max_message_bytes,
    )
    producer = PartitionProducer(plan.kafka, settings.group_id, raw_partition, positions.consumer, producer_settings)
    checkpoints = CheckpointStore(object_store(settings), settings.group_id, raw_partition)
    local = _local_store(settings, raw_partition)  # the last one that may fail: it holds a lock
    return Resources(producer, positions, CheckpointedState(local, checkpoints, state_settings(settings), run))


def restore_state(plan: BatchPlan, raw_partition: RawPartition, version: str) -> None:
    """Bring a local state that no task has open to a committed version. This fences no task, and commits nothing."""
    settings = plan.materializer
    with closing(_local_store(settings, raw_partition)) as local:
        before, began = local.version, time.monotonic()
        store = object_store(settings)
        restore(local, CheckpointStore(store, settings.group_id, raw_partition), version)
        if before != version:
            store.traffic.count(restores=1)
            seconds = round(time.monotonic() - began, 3)
            _logger.info("state restored", partition=str(raw_partition), bytes=local.size(), seconds=seconds)


def _local_store(settings: MaterializerSettings, raw_partition: RawPartition) -> LocalStore:
    return open_local_store(state_folder(settings) / str(raw_partition), settings.max_old_value_hours * 3600)


def delete_unused_states(settings: MaterializerSettings, own: Collection[str]) -> DiskUse:
    """See materializer.store.unused.delete_unused."""
    folder = state_folder(settings)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    limits = UnusedLimits(settings.unused_state_seconds, settings.unused_state_bytes)
    return delete_unused(folder, own, limits, time.time())


def state_folder(settings: MaterializerSettings) -> Path:
    """The folder of the group's local states."""
    return settings.state_directory / settings.group_id


def task_settings(settings: MaterializerSettings) -> TaskSettings:
    return TaskSettings(chunk_settings(settings), settings.max_clock_ahead_hours * 3_600_000, tidying(settings))


def tidying(settings: MaterializerSettings) -> Tidying:
    """So many versions that former changelogs and snapshots are deleted, once at the end of the changes, and once when
    RocksDB's files have no former values any more.
    """
    least = 2 * settings.snapshot_every_versions
    versions = settings.snapshot_every_versions + max(least, settings.changelog_retention_versions)
    return Tidying(versions, fold_settings(settings).keep_time_ms, (settings.max_old_value_hours + 1) * 3_600_000)


def chunk_settings(settings: MaterializerSettings) -> ChunkSettings:
    return ChunkSettings(settings.chunk_max_bytes, settings.chunk_max_messages, settings.chunk_max_seconds)


def state_settings(settings: MaterializerSettings) -> StateSettings:
    return StateSettings(
        settings.snapshot_every_versions,
        RetentionSettings(settings.changelog_retention_versions, settings.changelog_retention_seconds),
    )


def object_store(settings: MaterializerSettings) -> ObjectStore:
    """The checkpoint location. One object a process, which counts the process's traffic."""
    return _object_store(settings.checkpoint_location, _storage_seconds(settings), settings.restore_reads)


@lru_cache(maxsize=4)
def _object_store(location: str, answer_seconds: float, reads: int) -> ObjectStore:
    return ObjectStore(location, answer_seconds, reads)


@lru_cache(maxsize=4)
def _positions(settings: KafkaSettings, group: str) -> GroupPositions:
    """One consumer for each process and group."""
    return GroupPositions(settings, group)


def _storage_seconds(settings: MaterializerSettings) -> float:
    """Return for how many seconds a worker waits for an answer of the checkpoint location."""
    return settings.transaction_timeout_seconds * _UPLOAD_SHARE
