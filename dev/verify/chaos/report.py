"""Prints the results of `make verify WHAT=chaos`: a line for each cell and run, a table, how to repeat failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from dev.verify.chaos.matrix import Action

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from dev.verify.chaos.faults import Strike
    from dev.verify.chaos.matrix import Outcome
    from dev.verify.chaos.whole_path import ChaosResult
    from stream_runtime.fault_points import Point

SHOWN_CHARACTERS = 4000


def show_cell(console: Console, outcome: Outcome) -> None:
    verdict = "[red]DIFFERS[/]" if outcome.problem else "[green]ok[/]"
    console.print(f"{outcome.cell}: {verdict} ({outcome.seconds:.1f} s)", highlight=False)
    if outcome.problem:
        console.print(outcome.problem[-SHOWN_CHARACTERS:], style="red", highlight=False, markup=False, soft_wrap=True)


def show_matrix(console: Console, outcomes: Sequence[Outcome], seed: int, points: Iterable[Point], title: str) -> bool:
    """The table of all cells; whether all is well."""
    verdicts = {(outcome.cell.point, outcome.cell.action): outcome for outcome in outcomes}
    table = Table("point", *(action.name.lower() for action in Action), title=f"kill matrix of {title}")
    for point in points:
        row = [verdicts.get((point, action)) for action in Action]
        if any(row):
            table.add_row(point.name.lower(), *("" if one is None else _word(one) for one in row))
    console.print(table)
    red = [str(outcome.cell) for outcome in outcomes if outcome.problem]
    console.print(
        f"{len(outcomes)} cells, seed {seed}; that differ: {escape(', '.join(red)) or 'none'}",
        style="bold red" if red else "bold green",
        highlight=False,
    )
    return not red


def _word(outcome: Outcome) -> str:
    return "[bold red]differs[/]" if outcome.problem else "[green]ok[/]"


def show_strike(console: Console, seed: int, strike: Strike) -> None:
    console.print(f"seed {seed}: {strike}", style="dim", highlight=False)


def show_run(console: Console, result: ChaosResult) -> None:
    verdict = f"[red]{len(result.problems)} problems[/]" if result.problems else "[green]all agree[/]"
    console.print(
        f"seed {result.seed}: {', '.join(map(str, result.strikes))}; {result.statements} statements, {result.changes} "
        f"changes, {result.rows} rows compared, {verdict} ({result.seconds:.0f} s)",
        highlight=False,
    )
    for line in result.problems:
        console.print(line[-SHOWN_CHARACTERS:], style="red", highlight=False, markup=False, soft_wrap=True)


def show_runs(console: Console, results: Sequence[ChaosResult]) -> bool:
    """The table of all runs; whether all is well."""
    columns = ("faults", "statements", "changes", "expiries", "rows", "job restarted", "seconds", "verdict")
    table = Table("seed", *columns, title="random faults under load, the whole path")
    for result in results:
        struck = ", ".join(
            strike.point.name.lower() if strike.point else strike.fault.name.lower() for strike in result.strikes
        )
        counts = (
            result.statements,
            result.changes,
            result.expiries,
            result.rows,
            result.restarts,
            round(result.seconds),
        )
        verdict = f"[bold red]{len(result.problems)} problems[/]" if result.problems else "[green]ok[/]"
        table.add_row(str(result.seed), struck, *map(str, counts), verdict)
    console.print(table)
    red = [result.seed for result in results if result.problems]
    console.print(
        f"{len(results)} runs, {sum(len(result.strikes) for result in results)} faults, "
        f"{sum(result.statements for result in results)} statements, {sum(result.changes for result in results)} "
        f"changes, {sum(result.rows for result in results)} rows compared; seeds that differ: {red or 'none'}",
        style="bold red" if red else "bold green",
        highlight=False,
    )
    return not red
