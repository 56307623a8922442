"""The fewest items of one partition that still diverge, found by running many candidates side by side.

Statements first: each candidate goes to a partition of its own of one table, whose schema changes as the seed's did, so
a round costs as much as one run. Then the changes of the schema: a candidate is a table of its own (delta debugging:
Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input"). No program stops for a while in them: each
candidate would take as long.
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.errors.codes import CdcError
from dev.verify.model.check import EXPIRY_SECONDS, Seed, generator_of
from dev.verify.model.statement import Item, SchemaChange, Statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dev.verify.model.check import Run
    from dev.verify.model.place import TablePartition
    from dev.verify.model.tables import Table

MOST_ROUNDS = 40
TRIES = 3  # of everything, before it is said not to diverge
_keyspaces = itertools.count()

Indices = tuple[int, ...]


class Phases(NamedTuple):
    """The items of one Cassandra partition, in two phases."""

    # The writes of a seed to it, with the changes of its table.
    first: list[Item]
    # The writes to it once those of the first phase are out.
    then: list[Item]

    def chosen(self, kept: Iterable[int]) -> Phases:
        """The items of both, counted through, that are kept."""
        left = set(kept)
        numbered = list(enumerate((*self.first, *self.then)))
        of = len(self.first)
        return Phases(
            [item for at, item in numbered[:of] if at in left], [item for at, item in numbered[of:] if at in left]
        )

    def indices(self, kind: type[Item]) -> Indices:
        return tuple(at for at, item in enumerate((*self.first, *self.then)) if isinstance(item, kind))


class Shrinker:
    """`count` statements of `seed` over `tables` were run; one partition diverged."""

    def __init__(self, run: Run, seed: int, count: int, tables: Sequence[Table], place: TablePartition) -> None:
        self._run = run
        self._seed = seed
        self._count = count
        self._place = place
        self._tables = tables
        self.table = next(table for table in tables if table.name == place.table)

    def phases(self, start_us: int) -> Phases:
        one = generator_of(self._run, self._seed, self._tables, start_us)
        first = [*self._mine(one.statements(self._count)), *self._mine(one.end_of_changes())]
        return Phases(first, [*self._mine(one.late_statements()), *self._mine(one.last_statements())])

    def shrink(self, report: Callable[[str], None]) -> Phases | None:
        """The fewest items found; None if the partition's own do not diverge when run again."""
        phases = self.phases(0)
        changes = phases.indices(SchemaChange)
        kept = smallest(
            phases.indices(Statement), lambda candidates: self._diverging_partitions(candidates, changes), report
        )
        if kept is None:
            return None
        if changes:
            found = smallest(changes, lambda candidates: self._diverging_tables(candidates, kept), report)
            changes = changes if found is None else found
        return self.phases(int(time.time() * 1e6)).chosen((*kept, *changes))

    def _mine(self, items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            if isinstance(item, Statement):
                mine = item.only(*self._place)
                if mine is not None:
                    yield mine
            elif isinstance(item, SchemaChange) and self._place.table in item.tables():
                yield item

    def _diverging_partitions(self, candidates: Sequence[Indices], changes: Indices) -> list[Indices]:
        """All in one table; between two of its changes come the statements of all candidates."""
        phases = self.phases(int(time.time() * 1e6))
        parts = [
            [mine for at, item in enumerate(part, start) for mine in self._for_all(item, at, candidates, changes)]
            for start, part in ((0, phases.first), (len(phases.first), phases.then))
        ]
        with self._seed_of(self.table) as one:
            problems = self._problems(one, Phases(*parts))
            places = one.places(len(candidates))
            numbers = {place.partition for line in problems if (place := places.of(line)) is not None}
        return [candidates[number] for number in sorted(numbers) if number < len(candidates)]

    @staticmethod
    def _for_all(item: Item, at: int, candidates: Sequence[Indices], changes: Indices) -> Iterator[Item]:
        if isinstance(item, Statement):
            yield from (item.moved(number) for number, kept in enumerate(candidates) if at in kept)
        elif at in changes:
            yield item

    def _diverging_tables(self, candidates: Sequence[Indices], kept: Indices) -> list[Indices]:
        """Each alone; one whose statements Cassandra refuses does not count."""
        return [candidate for candidate in dict.fromkeys(candidates) if self._diverges((*kept, *candidate))]

    def _diverges(self, kept: Indices) -> bool:
        with self._seed_of(self.table) as one:
            try:
                problems = self._problems(one, self.phases(int(time.time() * 1e6)).chosen(kept))
            except (CdcError, RuntimeError):
                return False
            places = one.places()
            return any(places.of(line) == self._place for line in problems)

    def _seed_of(self, table: Table) -> Seed:
        return Seed(self._run, self._seed, f"shrink_{next(_keyspaces)}_{int(time.time())}", [table])

    @staticmethod
    def _problems(one: Seed, phases: Phases) -> list[str]:
        one.execute(phases.first)
        if phases.then:
            one.settler.wait_until_settled(time.time())
            one.execute(phases.then)
        one.catch_up(time.time() + EXPIRY_SECONDS)
        return one.problems()[0]


def smallest(
    kept: Indices, diverging: Callable[[Sequence[Indices]], list[Indices]], report: Callable[[str], None]
) -> Indices | None:
    """A part of `kept` that needs all its pieces; `diverging` says which candidates do. None if even all do not."""
    if not diverging([kept] * TRIES):
        return None
    pieces = 2
    for _ in range(MOST_ROUNDS):
        if len(kept) == 1:
            break
        found = diverging(complements(kept, pieces))
        if found:
            kept, pieces = min(found, key=len), max(pieces - 1, 2)
            report(f"{len(kept)} left")
        elif pieces >= len(kept):
            break
        else:
            pieces = min(2 * pieces, len(kept))
    return kept


def complements(kept: Indices, parts: int) -> list[Indices]:
    """`kept` without each of `parts` pieces of it."""
    size = -(-len(kept) // parts)
    return [kept[:at] + kept[at + size :] for at in range(0, len(kept), size)]
