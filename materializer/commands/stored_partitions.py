"""Reads what all commands need first: the raw partitions with a stored state, their committed positions, a state."""

from __future__ import annotations

import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from materializer.errors import RAW_FAULTS
from materializer.records import RawPartition
from stream_runtime.kafka import GroupPositions, driver_errors
from stream_runtime.state.checkpoint_location import object_store
from stream_runtime.state.checkpoints import CheckpointStore
from stream_runtime.state.restore import restore
from stream_runtime.state.rocksdb import open_local_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from materializer.settings import MaterializerSettings, Settings
    from stream_runtime.exactly_once.position import Position
    from stream_runtime.state.object_store import ObjectStore
    from stream_runtime.state.rocksdb import LocalStore


def describe_place(settings: MaterializerSettings) -> str:
    """Where list_stored_partitions looks, for an operator."""
    return f"the checkpoint location {settings.checkpoint_location} has no folder {settings.group_id}"


def list_stored_partitions(store: ObjectStore, group: str) -> list[RawPartition]:
    """The raw partitions that have a folder in the checkpoint location."""
    names = (name.rpartition("-") for name in store.folders(group))
    return sorted(RawPartition(topic, int(number)) for topic, _, number in names if topic and number.isdigit())


def read_positions(settings: Settings, raw_partitions: list[RawPartition]) -> dict[RawPartition, Position | None]:
    """The group's committed positions, as they are now. CdcError if another program has committed one."""
    group = settings.materializer.group_id
    with driver_errors(f"read the offsets of the group {group}"):
        return GroupPositions(settings.kafka, group, RAW_FAULTS, stable=False).read(raw_partitions)


@contextmanager
def restored(settings: Settings, raw_partition: RawPartition, position: Position) -> Iterator[LocalStore]:
    """The state at that position, in a temporary folder that has room for its snapshot; at a later one if the job has
    deleted that version since. CdcError if it is damaged.
    """
    checkpoints = CheckpointStore(
        object_store(settings.materializer), settings.materializer.group_id, raw_partition, RAW_FAULTS
    )
    temporary = tempfile.TemporaryDirectory(prefix="cassandra-materializer-")
    with temporary as folder, closing(open_local_store(Path(folder))) as state:
        while True:
            try:
                restore(state, checkpoints, position.version)
                break
            except CdcError as error:
                now = read_positions(settings, [raw_partition])[raw_partition]
                if error.code is not Code.STATE_DAMAGED or now is None or now.version == position.version:
                    raise
                position = now
        yield state
