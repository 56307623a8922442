"""The fewest statements of one partition that still diverge, found by running many candidates side by side.

Each candidate goes to a partition of its own of the same table, so a round costs as much as one run (delta debugging:
Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input").
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

from verify.model.check import EXPIRY_SECONDS, Seed
from verify.model.generator import Generator, Part, Statement
from verify.model.place import place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from verify.model.check import Run
    from verify.model.place import Place
    from verify.model.tables import Table

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

    def phases(self, start_us: int) -> tuple[list[Statement], list[Statement]]:
        """What the seed writes to the partition, and what it writes there once that has come out."""
        generator = Generator(self._seed, self._tables, start_us, has_ties=self._run.has_ties)
        first = list(self._mine(generator.statements(self._count)))
        return first, [*self._mine(generator.late_statements()), *self._mine(generator.last_statements())]

    def shrink(self, report: Callable[[str], None]) -> tuple[list[Statement], list[Statement]] | None:
        """The fewest statements found, by phases; None if the partition's own do not diverge when run again."""
        kept = smallest(tuple(range(sum(map(len, self.phases(0))))), self._diverging, report)
        return None if kept is None else chosen(self.phases(int(time.time() * 1e6)), kept)

    def _mine(self, statements: Iterable[Statement]) -> Iterator[Statement]:
        return (mine for one in statements if (mine := one.only(*self._place)) is not None)

    def _diverging(self, candidates: Sequence[Indices]) -> list[Indices]:
        phases = self.phases(int(time.time() * 1e6))
        with Seed(self._run, self._seed, f"shrink_{next(_keyspaces)}_{int(time.time())}", [self._table]) as one:
            sent = [chosen(phases, kept) for kept in candidates]
            first, then = (
                [moved(each, at) for at, kept in enumerate(part) for each in kept] for part in zip(*sent, strict=True)
            )
            one.execute(first)
            if then:
                one.settler.wait_until_settled(time.time())
                one.execute(then)
            one.catch_up(time.time() + EXPIRY_SECONDS)
            places = [place_of(problem) for problem in one.problems()[0]]
        numbers = {place.partition for place in places if place is not None}
        return [candidates[number] for number in sorted(numbers) if number < len(candidates)]


def chosen(phases: tuple[list[Statement], list[Statement]], kept: Indices) -> tuple[list[Statement], list[Statement]]:
    """The statements of both phases, counted through, that are kept."""
    first, then = phases
    return [first[at] for at in kept if at < len(first)], [then[at - len(first)] for at in kept if at >= len(first)]


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
