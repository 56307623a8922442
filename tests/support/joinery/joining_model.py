"""The join of changelogs, checked at every frontier: DuckDB joins the inputs' rows, and each chain is unbroken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joinery.joining.join import join_chunk
from joinery.joining.layout import read_frontier
from joinery.joining.start import has_begun
from joinery.routing.route import partition_of
from tests.support.joinery.changelogs import TARGET_PARTITIONS, Fold, rule_of, sql_join
from tests.support.materializer.memory_state import MemoryState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from joinery.joining.records import Joined
    from tests.support.joinery.changelogs import Change, Changelogs, Values

ALL = 1 << 30
"""Bytes that any changes fit into."""


def check_all(logs: Changelogs, changes: Sequence[Change], random: Random, *, is_new: bool = False) -> None:
    """Route and join changes in random order and parts. AssertionError if a frontier, or the end, is wrong.

    is_new: whether the join loads rows first, up to marks at random places.
    """
    partitions = [Partition(logs, number, is_new=is_new) for number in range(TARGET_PARTITIONS)]
    for change in changes:
        logs.add(change)
    if is_new:
        logs.mark(random)
    interleave(logs, partitions, random, [1, 30, ALL])
    rows = {key: row for partition in partitions for key, row in partition.fold.rows.items()}
    assert rows == sql_join(logs.inputs, logs.rows_at(logs.end))


class Partition:
    """A partition of the internal topic, which is joined."""

    def __init__(self, logs: Changelogs, number: int, *, is_new: bool = False) -> None:
        self._is_new = is_new
        self.state = MemoryState()
        self.fold = Fold()
        self.next = 0
        self.changes: list[Joined] = []
        self._logs = logs
        self._number = number
        self._rule = rule_of(logs.inputs)

    @property
    def is_behind(self) -> bool:
        return self.next < len(self._logs.topic[self._number])

    def join(self, most_messages: int, most_bytes: int) -> None:
        """Join a chunk, or its first part, and check the result."""
        messages = list(enumerate(self._logs.topic[self._number]))[self.next :][:most_messages]
        made = join_chunk(self._rule, self.state, messages, most_bytes, is_new=self._is_new)
        self._is_new = False
        self.state.apply(made.writes)
        if not has_begun(self.state):
            assert {change.op for change in made.changes} <= {"r"}
        self.fold.take(made.changes)
        self.changes += made.changes
        self.next += len(messages) - made.left
        frontier = read_frontier(iter(self.state.data.items()))
        if frontier is not None:
            assert self.fold.rows == sql_join(self._logs.inputs, self._own(self._logs.rows_at(frontier)))

    def _own(self, rows: list[list[Values]]) -> list[list[Values]]:
        """The rows whose groups are in this partition."""
        return [
            [
                values
                for values in found
                if partition_of(self._logs.group_of(of, values), TARGET_PARTITIONS) == self._number
            ]
            for of, found in enumerate(rows)
        ]


def interleave(logs: Changelogs, partitions: list[Partition], random: Random, budgets: list[int]) -> None:
    """Deliver all messages in a random order that keeps those of a source partition, and join them in between."""
    waiting = [place for place, queue in logs.sent.items() if queue]
    while waiting or any(partition.is_behind for partition in partitions):
        if waiting and random.random() < 0.7:
            place = random.choice(waiting)
            if not logs.deliver(*place):
                waiting.remove(place)
        else:
            partition = random.choice(partitions)
            if partition.is_behind:
                partition.join(random.choice((1, 2, 100)), random.choice(budgets))
