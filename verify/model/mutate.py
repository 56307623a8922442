"""`make verify WHAT=mutants`: a seed through the whole path with each defect in the Spark job; each must be found."""

from __future__ import annotations

import sys
from dataclasses import replace

import click
from rich.console import Console

from cdc_program.cli import reported_errors
from verify.model.__main__ import EVENTS_SHARE, REORDER, REORDER_SECONDS, every_event, stack_for
from verify.model.check import check
from verify.model.mutants import NAMES, REORDERING, start_with


@click.command()
@click.option("--seed", default=1, show_default=True, help="The seed.")
@click.option("--statements", default=1500, show_default=True, help="Its statements.")
@click.option("--defect", "defects", multiple=True, type=click.Choice(NAMES), help="Only this one; again for more.")
def main(seed: int, statements: int, defects: tuple[str, ...]) -> None:
    """Exit status 1 if a defect goes unnoticed."""
    console = Console(soft_wrap=True)
    missed = []
    with reported_errors(), stack_for("5.0", cluster=False, console=console) as (stack, run):
        job = stack.materializer
        job.stop()
        seeded = defects or NAMES
        for number, name in enumerate(seeded):
            seconds = REORDER_SECONDS if name == REORDERING else 0.0
            job.settings[REORDER] = seconds
            start_with(job, name)
            mutated = replace(run, reorder_seconds=seconds)
            result = check(mutated, seed, statements, f"mutant_{number}")
            if name == REORDERING:
                result.problems += every_event(mutated, seed, statements // EVENTS_SHARE)
            job.stop()
            found = f"found: {len(result.problems)} problems" if result.problems else "NOT FOUND"
            console.print(f"{name}: {found} ({result.seconds:.0f} s)", highlight=False)
            for line in result.problems[:1]:
                console.print(f"  {line}", style="dim", highlight=False, markup=False)
            missed += [] if result.problems else [name]
    console.print(f"{len(seeded)} defects, not found: {missed or 'none'}", style="bold red" if missed else "bold green")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
