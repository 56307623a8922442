"""Random statements over the declared tables, and what happens to the tables and the programs while they are written.

The same seed gives the same workload; `start_us` is added to its timestamps.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dev.verify.model.conditions import Conditions
from dev.verify.model.cql_text import cql
from dev.verify.model.evolution import TRUNCATIONS, Evolution
from dev.verify.model.statement import Item, Part, Pause, Resume, SchemaChange, Statement
from dev.verify.model.times import STEP_US, Times
from dev.verify.model.writes import Writes, multi_cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dev.verify.model.tables import Table

MOST_LATE_US = 300 * STEP_US  # after a deletion of what is purged soon
DELETED = 40  # deletions to write something older than
AGAIN = 0.08  # of the statements are followed by one that writes the same
BOUND = 0.4  # of the statements have bound values
CHANGES = 0.015  # of them change a schema, three times as many while a program stands still
PAUSE_STATEMENTS = 300
PAUSES_SHARE = 0.0015
PAUSES: tuple[Literal["publisher", "kafka"], ...] = ("publisher", "publisher", "kafka")


@dataclass(frozen=True, slots=True)
class Course:
    """The events besides statements."""

    # Cassandra's version, such as `5.0`.
    version: str = "5.0"
    # Whether the schema changes.
    evolves: bool = False
    # The time for which programs stop, in s; 0 if none does.
    pause_seconds: float = 0.0
    # The number of schema changes for each statement.
    changes: float = CHANGES
    # The share of the schema changes that is a TRUNCATE.
    truncations: float = TRUNCATIONS


class Generator:
    """The workload of one seed; with `has_ties`, several writes may have one timestamp."""

    def __init__(
        self,
        seed: int,
        tables: Sequence[Table],
        start_us: int,
        *,
        has_ties: bool = True,
        course: Course = Course(),
    ) -> None:
        self._course = course
        self._pick = random.Random(seed)
        self._again = random.Random(f"again {seed}")
        self._tables = {table.name: table for table in tables}
        self._times = Times(self._pick, start_us, has_ties=has_ties, has_long_ttls=course.evolves)
        # Of a partition deletion at a negative timestamp 5.0 makes an SSTable that it cannot read.
        self._writes = Writes(
            self._pick,
            self._times,
            is_negative_partition_deletion_safe=not course.version.startswith("5.0"),
        )
        self._conditions = Conditions(self._pick, self._times, self._writes)
        self._evolution = Evolution(
            self._pick, self._times, self._writes, self._tables, course.version, course.truncations
        )
        self._deleted: deque[tuple[str, int, int]] = deque(maxlen=DELETED)  # rows of a partition, at a time
        self._paused: Resume | None = None
        self._pause_left = 0

    def statements(self, count: int) -> Iterator[Item]:
        """Yield `count` statements, and what happens between them."""
        for number in range(count):
            self._times.step()
            yield from self._evolution.due()
            yield from self._events(count, number)
            state = self._pick.getstate()
            yield self._next()
            if self._again.random() < AGAIN:
                yield self._same(state)
        yield from self._resumed()

    def _next(self) -> Statement:
        table = self._chosen()
        return self._counter(table) if table.is_counter else self._statement(table)

    def _same(self, state: tuple[Any, ...]) -> Statement:
        """The last statement with later timestamps: what it writes is there already. What is chosen next is what would
        be without it. Of a counter the statement is an increment by 0.
        """
        after, recent, deleted = self._pick.getstate(), self._times.recent.copy(), self._deleted.copy()
        self._pick.setstate(state)
        self._times.step()
        statement = self._next()
        self._pick.setstate(after)
        self._times.recent, self._deleted = recent, deleted
        return statement.without_increments() if statement.is_counter() else statement

    def schedule(self, change: SchemaChange, after: int) -> None:
        """A change of the schema when so many statements more have been sent."""
        self._evolution.schedule(change, after)

    def late_statements(self) -> Iterator[Item]:
        """Older than deletions that came before: to be sent when these are in the materializer's state, for what comes
        with them in one batch is put in order.
        """
        for name, partition, deleted in self._deleted:
            if self._is_open(name) and not self._is_purged(name):
                yield self._insert_before(name, partition, deleted)

    def end_of_changes(self) -> Iterator[Item]:
        """Ends what was begun, so that every table can be read."""
        yield from self._evolution.last()

    def last_statements(self) -> Iterator[Statement]:
        """Deletions of counters: no increment may follow one, since Cassandra itself keeps no order there."""
        for table in self._tables.values():
            if table.is_counter:
                yield from self._counter_deletions(table)

    def _counter_deletions(self, table: Table) -> Iterator[Statement]:
        for partition in range(table.partitions):
            where = table.partition_where if partition % 4 == 2 else self._writes.row(table)
            what = "n " if partition % 4 == 1 else ""
            if partition % 4 != 3:
                yield Statement((Part(table, partition, cql("DELETE {}FROM $k.{} WHERE {}", what, table.name, where)),))

    def _chosen(self) -> Table:
        tables = [table for name, table in self._tables.items() if self._is_open(name)]
        return self._pick.choices(tables, [table.weight for table in tables])[0]

    def _is_open(self, name: str) -> bool:
        return name not in self._evolution.closed

    def _is_purged(self, name: str) -> bool:
        return self._tables[name].times == "rising"

    def _writable(self) -> list[Table]:
        return [table for name, table in self._tables.items() if self._is_open(name) and not table.is_counter]

    def _events(self, count: int, number: int) -> Iterator[Item]:
        course = self._course
        if course.pause_seconds:
            if self._paused:
                self._pause_left -= 1
                if not self._pause_left:
                    yield from self._resumed()
            elif PAUSE_STATEMENTS < number < count - PAUSE_STATEMENTS and self._pick.random() < PAUSES_SHARE:
                yield self._pause()
        share = course.changes * 3 if self._paused else course.changes
        if course.evolves and self._evolution.is_possible and self._pick.random() < share:
            yield from self._evolution.change()

    def _pause(self) -> Pause:
        program = self._pick.choice(PAUSES)
        self._pause_left = self._pick.randint(PAUSE_STATEMENTS // 4, PAUSE_STATEMENTS)
        self._paused = Resume(program, self._course.pause_seconds * self._pick.uniform(0.5, 1.5))
        return Pause(program)

    def _resumed(self) -> Iterator[Item]:
        if self._paused:
            yield self._paused
            self._paused = None
            # Nothing must come later than its deletion by as much as tombstones are kept.
            kept = [one for one in self._deleted if not self._is_purged(one[0])]
            self._deleted = deque(kept, maxlen=DELETED)

    def _statement(self, table: Table) -> Statement:
        chance = self._pick.random()
        self._writes.is_bound = self._pick.random() < BOUND and self._can_be_bound(table)
        if chance < 0.06:
            return self._batch()
        can_read = self._evolution.can_read(table) and table.times != "rising"
        if chance < 0.085 and can_read:
            return self._conditions.statement(table)
        if chance < 0.1 and can_read and any(kind.name == "list" for _, kind in multi_cell(table.regular)):
            part = Part(table, self._pick.randrange(table.partitions), self._writes.list_element(table))
            return Statement((part,), may_be_refused=True, is_bound=self._writes.is_bound)
        if chance < 0.14 and self._deleted:
            name, partition, deleted = self._pick.choice(self._deleted)
            if self._is_open(name) and not (self._is_purged(name) and self._times.now - deleted > MOST_LATE_US):
                return self._insert_before(name, partition, deleted)
        return Statement((self._part(table),), is_bound=self._writes.is_bound)

    def _can_be_bound(self, table: Table) -> bool:
        """Return whether statements for the table can be prepared. After ALTER TYPE, prepared statements keep the
        former type: 3.11 does not prepare the same text again.
        """
        return self._course.version != "3.11" or table.evolution != "types"

    def _part(self, table: Table, partition: int | None = None) -> Part:
        part, is_deletion = self._writes.part(table, partition)
        if is_deletion:
            self._deleted.append((table.name, part.partition, self._times.now))
        return part

    def _insert_before(self, name: str, partition: int, deleted: int) -> Statement:
        """An INSERT from before a deletion of the partition. In most cases the deletion covers it."""
        table = self._tables[name]
        ago = self._times.now - deleted
        self._writes.is_bound = False
        at = self._times.next() - (ago // STEP_US + 1) * STEP_US
        return Statement((Part(table, partition, self._writes.insert_at(table, at)),))

    def _batch(self) -> Statement:
        """Return a batch over some tables and partitions, or of many writes to one partition, which make one mutation.

        A mutation of several tables is quarantined if the publisher has never seen one of them: tables that come and go
        have batches of their own.
        """
        tables = self._writable()
        if self._writes.is_bound:
            tables = [table for table in tables if self._can_be_bound(table)]
        if self._pick.random() < 0.5:
            lasting = [table for table in tables if table.evolution != "recreated"]
            parts = [self._part(self._pick.choice(lasting)) for _ in range(self._pick.randint(2, 5))]
        else:
            first = self._part(self._pick.choice(tables))
            parts = [first, *(self._part(first.table, first.partition) for _ in range(self._pick.randint(2, 8)))]
        return Statement(tuple(parts), batch=self._pick.choice(("", "UNLOGGED")), is_bound=self._writes.is_bound)

    def _counter(self, table: Table) -> Statement:
        count = self._pick.choice((1, 1, 1, 3))
        parts = tuple(self._writes.increment(table) for _ in range(count))
        is_bound = self._pick.random() < BOUND
        return Statement(parts, batch=None if count == 1 else "COUNTER", is_bound=is_bound)
