"""Prints and keeps a benchmark's results: a table on the terminal, JSON in dev/bench/results, and its plots."""

from __future__ import annotations

import json
import platform
import statistics
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import psutil
from rich.console import Console
from rich.table import Table

from dev.bench import plots

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Figures = dict[str, float]


def medians(rounds: Sequence[Mapping[str, float]]) -> Figures:
    """The median of each figure over the rounds."""
    return {name: round(statistics.median(measured.get(name, 0.0) for measured in rounds), 3) for name in rounds[0]}


def note_round(figures: dict[str, list[Figures]], name: str, number: int, found: Figures) -> None:
    """Keep and print what a round has found."""
    figures.setdefault(name, []).append(found)
    click.echo(f"round {number + 1}, {name}: " + ", ".join(f"{key} {value:,.1f}" for key, value in found.items()))


def report(name: str, title: str, rows: Mapping[str, Figures], facts: Mapping[str, Any]) -> None:
    """Print a column for each of `rows`, write all to dev/bench/results/NAME.json, and draw it. `facts`: what was
    measured, and how.
    """
    table = Table("", title=title)
    for row in rows:
        table.add_column(row, justify="right")
    for figure in dict.fromkeys(figure for figures in rows.values() for figure in figures):
        table.add_row(figure, *(_shown(row[figure]) if figure in row else "" for row in rows.values()))
    Console().print(table)
    plots.RESULTS.mkdir(exist_ok=True)
    content = {"measured_at": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine(), **facts}
    text = json.dumps({**content, "results": rows}, indent=2) + "\n"
    (plots.RESULTS / f"{name}.json").write_text(text, encoding="utf-8")
    plots.draw(name)


def _shown(figure: float) -> str:
    """A figure below 1 says nothing with one decimal."""
    return f"{figure:,.1f}" if figure == 0 or abs(figure) >= 1 else f"{figure:.2g}"


def machine() -> dict[str, Any]:
    """Describe the machine, on which the figures depend."""
    return {
        "cores": psutil.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
