"""`make verify WHAT=mutants`: a seed through the whole path with each defect in its program; each must be found."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click
from rich.console import Console

from cdc_common.program.cli import reported_errors
from dev.verify.model.__main__ import BACKLOGS_SHARE, EVENTS_SHARE, REORDER_SECONDS, every_event, stack_for
from dev.verify.model.backlog_check import Stopped, check_backlogs
from dev.verify.model.check import check
from dev.verify.model.mutants import (
    BACKLOGS,
    BAD_TABLES,
    NAMES,
    REORDERING,
    SEEDS,
    SNAPSHOTS,
    running_with,
    start_with,
    version_for,
)
from dev.verify.model.names_check import check_names
from dev.verify.snapshot.stale_rows import stale_row_problems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dev.local_stack.servers.programs import Program
    from dev.local_stack.servers.stack import Stack
    from dev.verify.model.check import Run

GOOD_TABLES = 5  # beside tables that cannot be published
SHOWN = 300  # characters of a problem


@click.command()
@click.option("--seed", type=int, help="The seed; by default 1, or one in which the defect shows.")
@click.option("--statements", default=3000, show_default=True, help="Its statements.")
@click.option("--defect", "defects", multiple=True, type=click.Choice(NAMES), help="Only this one; again for more.")
def main(seed: int | None, statements: int, defects: tuple[str, ...]) -> None:
    """Exit status 1 if a defect goes unnoticed."""
    console = Console(soft_wrap=True)
    seeded, missed = defects or NAMES, []
    with reported_errors():
        of_model = [name for name in seeded if name not in SNAPSHOTS]
        for version in sorted({version_for(name) for name in of_model}, reverse=True):
            with stack_for(version, cluster=False, console=console) as (stack, run):
                names = [name for name in of_model if version_for(name) == version]
                missed += not_found(console, stack, run, names, seed, statements)
        for name in seeded:
            if name in SNAPSHOTS:
                missed += not_found_in_snapshot(console, name)
    console.print(f"{len(seeded)} defects, not found: {missed or 'none'}", style="bold red" if missed else "bold green")
    sys.exit(1 if missed else 0)


def not_found(
    console: Console, stack: Stack, run: Run, names: Sequence[str], seed: int | None, statements: int
) -> list[str]:
    missed = []
    for number, name in enumerate(names):
        start = time.monotonic()
        checked = seed or SEEDS.get(name, 1), statements, f"mutant_{number}"
        missed += show(console, name, problems_with(stack, run, name, checked), start)
    return missed


def not_found_in_snapshot(console: Console, name: str) -> list[str]:
    """Check a defect of snapshots on its own servers. Return the defect if it goes unnoticed."""

    def seed_defect(stack: Stack) -> None:
        start_with(stack, name)

    start = time.monotonic()
    problems = stale_row_problems(seed_defect, lambda text: console.print(text, style="dim", highlight=False))
    return show(console, name, problems, start)


def show(console: Console, name: str, problems: Sequence[str], start: float) -> list[str]:
    """The defect, if it has gone unnoticed."""
    found = f"found: {len(problems)} problems" if problems else "NOT FOUND"
    console.print(f"{name}: {found} ({time.monotonic() - start:.0f} s)", highlight=False)
    for line in problems[:1]:
        console.print(f"  {line[:SHOWN]}", style="dim", highlight=False, markup=False)
    return [] if problems else [name]


def problems_with(stack: Stack, run: Run, name: str, checked: tuple[int, int, str]) -> list[str]:
    """Return the problems that the check finds in `checked` (seed, statements, keyspace). CdcError if the program has
    ended: that a defect must not do.
    """
    seconds = REORDER_SECONDS if name == REORDERING else 0.0
    with running_with(stack, name, seconds) as mutant:
        try:
            return check_with(stack, replace(run, reorder_seconds=seconds), name, mutant, checked)
        except AssertionError as error:  # of what waits until all is out
            mutant.check()
            return [str(error)]


def check_with(stack: Stack, run: Run, name: str, mutant: Program, checked: tuple[int, int, str]) -> list[str]:
    """Run the check in which the defect shows. AssertionError if not all comes out."""
    seed, statements, keyspace = checked
    if name in BACKLOGS:
        stopped, count = Stopped(mutant), statements // BACKLOGS_SHARE
        [found] = check_backlogs(run, stopped, [seed], count, stack.check, f"{keyspace}_")
        return found.problems
    if name in BAD_TABLES:
        return check_names(run, stack, seed, GOOD_TABLES).problems
    problems = check(run, seed, statements, keyspace).problems
    return problems + every_event(run, seed, statements // EVENTS_SHARE) if name == REORDERING else problems


if __name__ == "__main__":
    main()
