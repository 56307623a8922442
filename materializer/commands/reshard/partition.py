"""One raw partition while `state reshard` is at work: what is folded moves its state's version, but not its offset.

So all of it may be done again after a crash: what is folded twice changes nothing and emits nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import chain, groupby
from typing import TYPE_CHECKING, NamedTuple

from cdc_program.errors import CdcError, Code
from materializer.commands.reshard.redistribute import is_settled
from materializer.exactly_once.partition_task import check_clock
from materializer.fault_points import ReshardPoint, reach
from materializer.job.open_partitions import limits_of, open_resources
from materializer.records import RawPartition, RawRecord
from materializer.store.changelog import Changelog, Head
from materializer.store.deadline import within
from materializer.store.restore import restore
from materializer.store.versions import NOTHING, next_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from materializer.exactly_once.partition_task import Limits, Resources, Work
    from materializer.exactly_once.position import Position
    from materializer.fold.result import ChunkResult
    from materializer.job.plan import BatchPlan
    from materializer.records import Message


class RawMessageAt(NamedTuple):
    """A record, and the raw partition that it was read from."""

    source: RawPartition
    record: RawRecord


class DealtPartition:
    """Whoever worked on the raw partition before is fenced; `position` is what is committed."""

    def __init__(self, partition: RawPartition, resources: Resources, limits: Limits, position: Position) -> None:
        self.position = position
        self._partition = partition
        self._transactions, _, self.state, self._history = resources
        self._limits = limits
        restore(self.state, self._history, position.version)

    def commit(self, position: Position) -> None:
        """Nothing but the position."""
        self._transactions.begin()
        self._transactions.send_position(position)
        self._transactions.commit()
        self.position = position

    def fold(self, found: Sequence[RawMessageAt], work: Work) -> int:
        """Fold the records, in as many transactions as it takes: how many changes came out."""
        changes = 0
        while found:
            result = work.fold(self.state, [each.record for each in found])
            check_clock(self._partition, self.state.head, result.now_ms, self._limits.max_clock_jump_ms)
            if result.writes:
                self._store(result, found, work)
            changes += len(result.changes)
            found = found[len(found) - result.left :]
        return changes

    def settle(self, tick: RawRecord, work: Work) -> int:
        """Finish what is under way, at the time that `tick` brings: as `fold`."""
        changes = self.fold([RawMessageAt(self._partition, tick)], work)
        while not is_settled(self.state):
            changes += self.fold([RawMessageAt(self._partition, tick)], work)
        return changes

    def _store(self, result: ChunkResult, found: Sequence[RawMessageAt], work: Work) -> None:
        """As a task does it."""
        before = self.position
        after = before._replace(version=next_version(before.version))
        head = Head(after.version, after.offset, result.now_ms, work.partitions)
        changelog = Changelog(head, before.version, before.offset, result.writes)
        self._transactions.begin()
        for message in chain(work.emit(result.changes), self._letters(result, found, work)):
            self._transactions.send(message)
        what = f"storing a changelog of {self._partition}"
        within(self._limits.upload_seconds, lambda: self._history.write_changelog(changelog), what)
        self._transactions.send_position(after)
        reach(ReshardPoint.IN_FOLD)
        self._transactions.commit()
        self.position = after
        self.state.apply(changelog)

    def _letters(self, result: ChunkResult, found: Sequence[RawMessageAt], work: Work) -> Iterator[Message]:
        """Dead letters tell where the message lies, which may be another raw partition."""
        sources = {(each.record.key, each.record.value, each.record.offset): each.source for each in found}
        placed = (
            (sources.get((each.key, each.value or b"", each.offset), self._partition), each)
            for each in result.dead_letters
        )
        for source, letters in groupby(placed, key=lambda each: each[0]):
            yield from work.bury(source, [letter for _, letter in letters])


@contextmanager
def opened(plan: BatchPlan, partition: RawPartition, expected: Position) -> Iterator[DealtPartition]:
    """CdcError(STATE_MISMATCH) where another process has committed in the meantime."""
    resources = open_resources(plan, partition)
    try:
        if (resources.read_position() or expected._replace(offset=0, version=NOTHING)) != expected:
            raise overtaken(partition)
        yield DealtPartition(partition, resources, limits_of(plan.materializer), expected)
    finally:
        resources.transactions.abandon()
        resources.state.close()


def overtaken(partition: RawPartition) -> CdcError:
    """CdcError(STATE_MISMATCH)."""
    return CdcError(
        Code.STATE_MISMATCH,
        f"Another process has moved the group's position of {partition} meanwhile.",
        "Stop the materializer, and any other `state reshard` of this group; then run it again.",
    )
