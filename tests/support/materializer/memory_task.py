"""A task whose state and checkpoint location are real, while its broker is a list of what was committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from materializer.errors import RAW_FAULTS
from stream_runtime.exactly_once.chunks import ChunkSettings
from stream_runtime.exactly_once.partition_task import PartitionTask, TaskSettings
from stream_runtime.exactly_once.resources import Resources
from stream_runtime.fault_points import FaultPoint
from stream_runtime.state.checkpointed_state import CheckpointedState
from stream_runtime.state.checkpoints import CheckpointStore, RetentionSettings
from stream_runtime.state.object_store import ObjectStore
from stream_runtime.state.rocksdb import open_local_store
from stream_runtime.state.snapshots import StateSettings
from tests.support.materializer.memory_broker import PARTITION

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.materializer.memory_broker import MemoryBroker

TASK = TaskSettings(ChunkSettings(1 << 20, 1000, 60.0), faults=RAW_FAULTS)
STATE = StateSettings(4, RetentionSettings(3, 0))
# Those that a task reaches again with each part of a chunk.
POINTS = [
    FaultPoint.AFTER_PART_FOLD,
    FaultPoint.AFTER_FOLD,
    FaultPoint.IN_PRODUCE,
    FaultPoint.AFTER_PRODUCE,
    FaultPoint.AFTER_CHANGELOG,
    FaultPoint.AFTER_SEND_OFFSETS,
    FaultPoint.AFTER_COMMIT,
    FaultPoint.AFTER_APPLY,
    FaultPoint.AFTER_PART,
]


def open_task(broker: MemoryBroker, folder: Path, settings: TaskSettings = TASK) -> PartitionTask:
    checkpoints = CheckpointStore(ObjectStore(str(folder / "checkpoint")), "group", PARTITION)
    state = CheckpointedState(open_local_store(folder / "state"), checkpoints, STATE)
    return PartitionTask(PARTITION, Resources(broker, state), settings)
