"""One raw partition while `state reshard` works on it: a fold moves the state's version, but not the offset.

After a crash everything may be done again: what is folded twice changes nothing and sends nothing.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.errors.codes import CdcError, Code
from materializer.commands.reshard.redistribute import is_settled
from materializer.errors import RAW_FAULTS
from materializer.fault_points import ReshardPoint
from materializer.records import RawPartition, RawRecord
from materializer.worker.wiring import open_resources, task_settings
from stream_runtime.exactly_once.committer import Committer
from stream_runtime.exactly_once.position import decode
from stream_runtime.state.versions import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from materializer.fold.result import ChunkResult
    from materializer.processing.raw_processor import RawProcessor
    from materializer.worker.batch_plan import BatchPlan
    from stream_runtime.exactly_once.partition_task import TaskSettings
    from stream_runtime.exactly_once.position import Position
    from stream_runtime.exactly_once.resources import Resources
    from stream_runtime.records import ChangeRun, Message


class RawMessageAt(NamedTuple):
    """A raw message and where it was read."""

    # The raw partition that it was read from.
    source: RawPartition
    # The raw message.
    record: RawRecord


class ReshardedPartition:
    """Every earlier owner of the raw partition is fenced; `position` is the committed one."""

    def __init__(
        self, raw_partition: RawPartition, resources: Resources, settings: TaskSettings, position: Position
    ) -> None:
        self.position = position
        self._raw_partition = raw_partition
        self._state = resources.state
        self._settings = settings
        self._committer = Committer(raw_partition, resources)
        self._state.restore_to(position.version)

    def commit_position(self, position: Position) -> None:
        """Commit a position whose state is the present one."""
        self._committer.commit_position(position)
        self.position = position

    def fold(self, found: Sequence[RawMessageAt], processor: RawProcessor) -> int:
        """Fold the records, in as many transactions as needed: the number of changes."""
        changes = 0
        while found:
            result = processor.fold(self._state.local, [message.record for message in found])
            clock_ms = 1000 * time.time()
            self._settings.check(self._raw_partition, self._state.head, result, clock_ms)
            if result.writes:
                messages = self._messages(result, found, processor)
                self.position = self._committer.commit_chunk(self.position, self.position.offset, result, messages)
            changes += len(result.changes)
            found = found[len(found) - result.left :]
        return changes

    def settle(self, tick: RawRecord, processor: RawProcessor) -> int:
        """Finish all unfinished work at the time of `tick`: the number of changes."""
        changes = self.fold([RawMessageAt(self._raw_partition, tick)], processor)
        while not is_settled(self._state.local):
            changes += self.fold([RawMessageAt(self._raw_partition, tick)], processor)
        return changes

    def _messages(
        self, result: ChunkResult, found: Sequence[RawMessageAt], processor: RawProcessor
    ) -> Iterator[Message | ChangeRun]:
        """Return the messages of a chunk as RawProcessor.messages does. Each dead letter names the raw partition that
        its message came from, which may be another one.
        """
        sources = {
            (message.record.key, message.record.value, message.record.offset): message.source for message in found
        }
        placed = (
            (sources.get((letter.key, letter.value or b"", letter.offset), self._raw_partition), letter)
            for letter in result.dead_letters
        )
        return chain(
            processor.change_messages(result),
            *(
                processor.dead_letter_messages(source, [letter for _, letter in letters])
                for source, letters in groupby(placed, key=itemgetter(0))
            ),
        )


@contextmanager
def opened(
    plan: BatchPlan, raw_partition: RawPartition, expected: Position, begun: Position
) -> Iterator[ReshardedPartition]:
    """Open the raw partition for a step. CdcError(STATE_MISMATCH) if another process has committed since.

    begun: the position as this step leaves it, whatever the version: an earlier try of the step may have got there.
    """
    resources = open_resources(plan, raw_partition, before_commit=ReshardPoint.IN_FOLD)
    try:
        stored = resources.commits.read()[raw_partition]
        found = None if stored is None else decode(stored.offset, stored.metadata, raw_partition, RAW_FAULTS)
        position = found or expected._replace(offset=0, version=NOTHING)
        if position != expected and position._replace(version=begun.version) != begun:
            raise overtaken(raw_partition)
        yield ReshardedPartition(raw_partition, resources, task_settings(plan.materializer), position)
    finally:
        resources.close()


def overtaken(raw_partition: RawPartition) -> CdcError:
    """Return the CdcError(STATE_MISMATCH) for a raw partition whose position another process has moved."""
    return CdcError(
        Code.STATE_MISMATCH,
        f"Another process has moved the group's position of {raw_partition}.",
        "Stop the materializer, and any other `state reshard` of this group; then run it again.",
    )
