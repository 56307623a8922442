"""Wiring: from settings to what works on a raw partition, and to the checkpoint location."""

from __future__ import annotations

import time
from contextlib import closing
from functools import lru_cache
from typing import TYPE_CHECKING

import structlog

from materializer.errors import RAW_FAULTS
from materializer.processing.processor import fold_settings
from materializer.worker.clock_check import ClockCheck
from stream_runtime.exactly_once.chunks import ChunkSettings
from stream_runtime.exactly_once.partition_task import PartitionTask, TaskSettings
from stream_runtime.exactly_once.rest import Tidying
from stream_runtime.fault_points import FaultPoint, reach
from stream_runtime.kafka import PRODUCER_DEFAULTS, GroupPositions
from stream_runtime.records import Share
from stream_runtime.state.checkpoint_location import object_store
from stream_runtime.state.checkpoints import CheckpointStore
from stream_runtime.state.restore import restore
from stream_runtime.state.rocksdb import open_local_store
from stream_runtime.state.snapshots import at_once
from stream_runtime.state.unused import UnusedLimits, delete_unused
from stream_runtime.worker.open_resources import Opening, state_folder
from stream_runtime.worker.open_resources import open_resources as open_share

if TYPE_CHECKING:
    from collections.abc import Collection

    from cdc_common.settings import KafkaSettings
    from materializer.records import RawPartition
    from materializer.settings import MaterializerSettings
    from materializer.worker.batch_plan import BatchPlan
    from stream_runtime.exactly_once.resources import Resources
    from stream_runtime.fault_points import Point
    from stream_runtime.state.rocksdb import LocalStore
    from stream_runtime.state.snapshots import Run
    from stream_runtime.state.unused import DiskUse

_logger = structlog.get_logger(__name__)


def open_task(plan: BatchPlan, raw_partition: RawPartition, run: Run = at_once) -> PartitionTask:
    """A task that has fenced every other one of the raw partition. run: how it uploads snapshots."""
    reach(FaultPoint.BEFORE_INIT)
    return PartitionTask(raw_partition, open_resources(plan, raw_partition, run), task_settings(plan.materializer))


def open_resources(
    plan: BatchPlan,
    raw_partition: RawPartition,
    run: Run = at_once,
    before_commit: Point = FaultPoint.AFTER_SEND_OFFSETS,
) -> Resources:
    """Open what is needed to work on a raw partition. This fences every earlier owner."""
    settings = plan.materializer
    topic = plan.topics.get(raw_partition.topic)
    opening = Opening(
        RAW_FAULTS,
        run,
        PRODUCER_DEFAULTS.max_message_bytes if topic is None else topic.max_message_bytes,
        settings.max_old_value_hours * 3600,
        before_commit,
    )
    positions = _positions(plan.kafka, settings.group_id)
    return open_share(plan.kafka, settings, Share.of(raw_partition), positions, opening)


def restore_state(plan: BatchPlan, raw_partition: RawPartition, version: str) -> None:
    """Bring a local state that no task has open to a committed version. This fences no task, and commits nothing."""
    settings = plan.materializer
    with closing(_local_store(settings, raw_partition)) as local:
        before, began = local.version, time.monotonic()
        store = object_store(settings)
        restore(local, CheckpointStore(store, settings.group_id, raw_partition, RAW_FAULTS), version)
        if before != version:
            store.traffic.count(restores=1)
            seconds = round(time.monotonic() - began, 3)
            _logger.info("state restored", partition=str(raw_partition), bytes=local.size(), seconds=seconds)


def _local_store(settings: MaterializerSettings, raw_partition: RawPartition) -> LocalStore:
    return open_local_store(state_folder(settings) / str(raw_partition), settings.max_old_value_hours * 3600)


def delete_unused_states(settings: MaterializerSettings, own: Collection[str]) -> DiskUse:
    """See stream_runtime.state.unused.delete_unused."""
    folder = state_folder(settings)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    limits = UnusedLimits(settings.unused_state_seconds, settings.unused_state_bytes)
    return delete_unused(folder, own, limits, time.time())


def task_settings(settings: MaterializerSettings) -> TaskSettings:
    return TaskSettings(
        chunk_settings(settings), ClockCheck(settings.max_clock_ahead_hours * 3_600_000), tidying(settings), RAW_FAULTS
    )


def tidying(settings: MaterializerSettings) -> Tidying:
    """So many versions that former changelogs and snapshots are deleted, once at the end of the changes, and once when
    RocksDB's files have no former values any more.
    """
    least = 2 * settings.snapshot_every_versions
    versions = settings.snapshot_every_versions + max(least, settings.changelog_retention_versions)
    return Tidying(versions, fold_settings(settings).keep_time_ms, (settings.max_old_value_hours + 1) * 3_600_000)


def chunk_settings(settings: MaterializerSettings) -> ChunkSettings:
    return ChunkSettings(settings.chunk_max_bytes, settings.chunk_max_messages, settings.chunk_max_seconds)


@lru_cache(maxsize=4)
def _positions(settings: KafkaSettings, group: str) -> GroupPositions:
    """One consumer for each process and group."""
    return GroupPositions(settings, group, RAW_FAULTS)
