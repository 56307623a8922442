"""The fewest statements of one partition that still diverge, found by running many candidates side by side.

Each candidate goes to a partition of its own of the same table, so a round costs as much as one run (delta debugging:
Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input").
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

from tests.model.check import EXPIRY_SECONDS, Seed
from tests.model.generator import Generator, Part, Statement
from tests.model.place import place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.model.check import Run
    from tests.model.place import Place
    from tests.model.tables import Table

MOST_ROUNDS = 40
TRIES = 3  # of everything, before it is said not to diverge
_keyspaces = itertools.count()

Indices = tuple[int, ...]


class Shrinker:
    """`count` statements of `seed` over `tables` were run; one partition diverged."""

    def __init__(self, run: Run, seed: int, count: int, tables: Sequence[Table], place: Place) -> None:
        self._run = run
        self._seed = seed
        self._count = count
        self._tables = tables
        self._place = place
        self._table = next(table for table in tables if table.name == place.table)

    def statements(self, start_us: int) -> list[Statement]:
        """What the seed writes to the partition."""
        generator = Generator(self._seed, self._tables, start_us, has_ties=self._run.has_ties)
        parts = (generator.statements(self._count), generator.late_statements(), generator.last_statements())
        everything = itertools.chain.from_iterable(parts)
        return [mine for one in everything if (mine := one.only(*self._place)) is not None]

    def shrink(self, report: Callable[[str], None]) -> list[Statement] | None:
        """The fewest statements found; None if the partition's own do not diverge when they are run again."""
        kept = smallest(tuple(range(len(self.statements(0)))), self._diverging, report)
        if kept is None:
            return None
        everything = self.statements(int(time.time() * 1e6))
        return [everything[at] for at in kept]

    def _diverging(self, candidates: Sequence[Indices]) -> list[Indices]:
        everything = self.statements(int(time.time() * 1e6))
        with Seed(self._run, self._seed, f"shrink_{next(_keyspaces)}_{int(time.time())}", [self._table]) as one:
            one.execute([moved(everything[at], partition) for partition, kept in enumerate(candidates) for at in kept])
            one.catch_up(time.time() + EXPIRY_SECONDS)
            places = [place_of(problem) for problem in one.problems()[0]]
        numbers = {place.partition for place in places if place is not None}
        return [candidates[number] for number in sorted(numbers) if number < len(candidates)]


def smallest(
    kept: Indices, diverging: Callable[[Sequence[Indices]], list[Indices]], report: Callable[[str], None]
) -> Indices | None:
    """A part of `kept` of which no piece can go; `diverging` says which candidates do. None if even all do not."""
    if not diverging([kept] * TRIES):
        return None
    pieces = 2
    for _ in range(MOST_ROUNDS):
        if len(kept) == 1:
            break
        found = diverging(complements(kept, pieces))
        if found:
            kept, pieces = min(found, key=len), max(pieces - 1, 2)
            report(f"{len(kept)} statements left")
        elif pieces >= len(kept):
            break
        else:
            pieces = min(2 * pieces, len(kept))
    return kept


def complements(kept: Indices, parts: int) -> list[Indices]:
    """`kept` without each of `parts` pieces of it."""
    size = -(-len(kept) // parts)
    return [kept[:at] + kept[at + size :] for at in range(0, len(kept), size)]


def moved(statement: Statement, partition: int) -> Statement:
    """The statement for another partition."""
    return statement._replace(parts=tuple(Part(part.table, partition, part.text) for part in statement.parts))
