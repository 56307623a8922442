"""The states of a raw topic's partitions: `state reshard` reads the old ones and stores those of the targets.

Each function is a task: it is given all that it needs, and can run on any machine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from materializer.commands.reshard.parts import PartsPlace, PartWriter, read_parts
from materializer.commands.reshard.redistribute import Redistribution, read_facts, redistribute
from materializer.errors import RAW_FAULTS
from materializer.fault_points import ReshardPoint
from materializer.records import RawPartition
from stream_runtime.fault_points import reach
from stream_runtime.state.bulk_load import BulkLoad
from stream_runtime.state.changelog import Head
from stream_runtime.state.checkpoint_location import object_store
from stream_runtime.state.checkpoints import CheckpointStore
from stream_runtime.state.restore import restore
from stream_runtime.state.rocksdb import open_local_store
from stream_runtime.state.versions import next_version, sequence
from stream_runtime.worker.open_resources import state_folder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from materializer.commands.reshard.redistribute import StateFacts
    from materializer.settings import MaterializerSettings
    from stream_runtime.state.rocksdb import LocalStore


class OldState(NamedTuple):
    """An old state."""

    # Its raw partition.
    raw_partition: RawPartition
    # Its committed version.
    version: str


class Split(NamedTuple):
    """A source to be split."""

    # The old state.
    source: OldState
    # As one of Redistribution's.
    schema_numbers: Mapping[int, int]


class Target(NamedTuple):
    """A new state."""

    # Its raw partition.
    raw_partition: RawPartition
    # The offset of the raw partition at which it begins.
    offset: int
    # The names of the parts that it is made of.
    parts: Sequence[str]


def facts_of(settings: MaterializerSettings, source: OldState) -> StateFacts:
    with _open(settings, source) as state:
        return read_facts(state)


def newest_version(settings: MaterializerSettings, raw_partitions: Collection[RawPartition]) -> str:
    """The newest version that is stored of any of them, committed or not."""
    return max(
        (_checkpoints(settings, raw_partition).newest_version() for raw_partition in raw_partitions), key=sequence
    )


def split_source(
    settings: MaterializerSettings, place: PartsPlace, target_count: int, split: Split
) -> dict[int, list[str]]:
    """Write the entries of an old state to parts, in one pass: the names of each target's parts."""
    writer = PartWriter(place, settings)
    with _open(settings, split.source) as state:
        for number, key, value in redistribute(state, split.schema_numbers, target_count):
            writer.add(number, key, value)
    return writer.finish()


def store_target(
    settings: MaterializerSettings, place: PartsPlace, redistribution: Redistribution, newest: str, target: Target
) -> tuple[int, str]:
    """Store a snapshot of a new state, later than the version `newest`: the number of its entries, and its version.

    Each try has a version of its own, so that an earlier one which goes on elsewhere replaces nothing.
    """
    version = next_version(newest)
    head = Head(version, target.offset, redistribution.times.now_ms, redistribution.target_count)
    folder = state_folder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="reshard-") as here:
        load = BulkLoad(open_local_store(Path(here)), head, redistribution.initial)
        for writes in read_parts(place, settings, target.parts):
            load.add_all(writes)
        entries, state = load.finish()
        with closing(state):
            checkpoints = _checkpoints(settings, target.raw_partition)
            checkpoints.write_snapshot(version, state.copy().files(), None, is_own=True)
    reach(ReshardPoint.IN_REDISTRIBUTION)
    return entries, version


@contextmanager
def _open(settings: MaterializerSettings, source: OldState) -> Iterator[LocalStore]:
    with closing(open_local_store(state_folder(settings) / str(source.raw_partition))) as state:
        restore(state, _checkpoints(settings, source.raw_partition), source.version)
        yield state


def _checkpoints(settings: MaterializerSettings, raw_partition: RawPartition) -> CheckpointStore:
    return CheckpointStore(object_store(settings), settings.group_id, raw_partition, RAW_FAULTS)
