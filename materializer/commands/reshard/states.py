"""The states of a raw topic's partitions: `state reshard` reads the old ones and stores those of the targets."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from materializer.commands.reshard.redistribute import read_facts, redistribute
from materializer.fault_points import ReshardPoint, reach
from materializer.job.wiring import object_store
from materializer.store.bulk_load import BulkLoad
from materializer.store.checkpoints import CheckpointStore
from materializer.store.restore import restore
from materializer.store.rocksdb import open_local_store
from materializer.store.versions import sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from cdc_program.settings import MaterializerSettings
    from materializer.commands.reshard.redistribute import Redistribution, StateFacts
    from materializer.records import RawPartition
    from materializer.store.changelog import Head
    from materializer.store.rocksdb import LocalStore


class TopicStates:
    """`say` prints progress."""

    def __init__(self, settings: MaterializerSettings, say: Callable[[str], None]) -> None:
        self._group = settings.group_id
        self._folder = settings.state_directory / settings.group_id
        self._store = object_store(settings)
        self._say = say

    def read_facts(self, raw_partition: RawPartition, version: str) -> StateFacts:
        with self._open(raw_partition, version) as state:
            return read_facts(state)

    def newest_version(self, raw_partitions: Collection[RawPartition]) -> str:
        """The newest version that is stored of any of them, committed or not."""
        return max((self._checkpoints(each).newest_version() for each in raw_partitions), key=sequence)

    def store_targets(
        self,
        sources: Mapping[RawPartition, str],
        targets: Mapping[RawPartition, Head],
        redistribution: Redistribution,
    ) -> None:
        """Store a snapshot of each target. `sources` are the committed versions of the old states."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=self._folder, prefix="reshard-")))
            loads = {
                target.partition: BulkLoad(
                    stack.enter_context(closing(open_local_store(folder / str(target.partition)))),
                    head,
                    redistribution.initial,
                )
                for target, head in targets.items()
            }
            for (source, version), numbers in zip(sources.items(), redistribution.schema_numbers, strict=True):
                with self._open(source, version) as state:
                    for number, key, value in redistribute(state, numbers, redistribution.target_count, loads):
                        loads[number].add(key, value)
            for target, head in targets.items():
                entries, state = loads[target.partition].finish()
                write = partial(self._checkpoints(target).write_snapshot, head.version)
                state.checkpoint(partial(_write_first_snapshot, write))
                reach(ReshardPoint.IN_REDISTRIBUTION)
                self._say(f"{target}: {entries} entries")

    @contextmanager
    def _open(self, raw_partition: RawPartition, version: str) -> Iterator[LocalStore]:
        with closing(open_local_store(self._folder / str(raw_partition))) as state:
            restore(state, self._checkpoints(raw_partition), version)
            yield state

    def _checkpoints(self, raw_partition: RawPartition) -> CheckpointStore:
        return CheckpointStore(self._store, self._group, raw_partition)


def _write_first_snapshot(write: Callable[..., object], files: dict[Path, str]) -> None:
    """A snapshot without a predecessor."""
    write(files, None, is_own=True)
