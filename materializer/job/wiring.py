"""Wiring: from settings to what works on a raw partition, and to the checkpoint location."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from materializer.exactly_once.chunks import ChunkSettings
from materializer.exactly_once.partition_task import PartitionTask, TaskSettings
from materializer.exactly_once.resources import Resources
from materializer.fault_points import FaultPoint, reach
from materializer.kafka import PRODUCER_DEFAULTS, GroupPositions, PartitionProducer, ProducerSettings
from materializer.store.checkpointed_state import CheckpointedState, StateSettings
from materializer.store.checkpoints import CheckpointStore, RetentionSettings
from materializer.store.object_store import ObjectStore
from materializer.store.rocksdb import open_local_store

if TYPE_CHECKING:
    from cdc_program.settings import KafkaSettings, MaterializerSettings
    from materializer.job.plan import BatchPlan
    from materializer.records import RawPartition

_UPLOAD_SHARE = 0.75  # of a transaction's timeout


def open_task(plan: BatchPlan, raw_partition: RawPartition) -> PartitionTask:
    """A task that has fenced every other one of the raw partition."""
    reach(FaultPoint.BEFORE_INIT)
    return PartitionTask(raw_partition, open_resources(plan, raw_partition), task_settings(plan.materializer))


def open_resources(plan: BatchPlan, raw_partition: RawPartition) -> Resources:
    """What works on a raw partition. Every earlier owner is fenced."""
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
    local = open_local_store(settings.state_directory / settings.group_id / str(raw_partition))
    checkpoints = CheckpointStore(object_store(settings), settings.group_id, raw_partition)
    return Resources(producer, positions, CheckpointedState(local, checkpoints, state_settings(settings)))


def task_settings(settings: MaterializerSettings) -> TaskSettings:
    return TaskSettings(chunk_settings(settings), settings.max_clock_ahead_hours * 3_600_000)


def chunk_settings(settings: MaterializerSettings) -> ChunkSettings:
    return ChunkSettings(settings.chunk_max_bytes, settings.chunk_max_messages, settings.chunk_max_seconds)


def state_settings(settings: MaterializerSettings) -> StateSettings:
    return StateSettings(
        settings.snapshot_every_versions,
        RetentionSettings(settings.changelog_retention_versions, settings.changelog_retention_seconds),
        _storage_seconds(settings),
    )


def object_store(settings: MaterializerSettings) -> ObjectStore:
    """The checkpoint location. One object a process, which counts the process's traffic."""
    return _object_store(settings.checkpoint_location, _storage_seconds(settings))


@lru_cache(maxsize=4)
def _object_store(location: str, answer_seconds: float) -> ObjectStore:
    return ObjectStore(location, answer_seconds)


@lru_cache(maxsize=4)
def _positions(settings: KafkaSettings, group: str) -> GroupPositions:
    """One consumer for each process and group."""
    return GroupPositions(settings, group)


def _storage_seconds(settings: MaterializerSettings) -> float:
    """How long a worker waits for an answer of the checkpoint location."""
    return settings.transaction_timeout_seconds * _UPLOAD_SHARE
