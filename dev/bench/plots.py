"""Draws what the benchmarks measured: dev/bench/results/*.json become docs/plots/*.svg; `python -m dev.bench.plots`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, NamedTuple

import pygal
from pygal.style import Style

from dev.local_stack.process.paths import project_root

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RESULTS = project_root() / "dev" / "bench" / "results"
PLOTS = project_root() / "docs" / "plots"
_STYLE = Style(
    background="white",
    plot_background="white",
    font_family="sans-serif",
    colors=("#1f6feb", "#d9822b", "#6b7280", "#2da44e", "#8250df"),
    label_font_size=13,
    major_label_font_size=13,
    value_font_size=13,
    title_font_size=17,
    legend_font_size=13,
)


class Plot(NamedTuple):
    """A chart of some figures of a benchmark's results."""

    # The name of the benchmark, which its file of results has.
    benchmark: str
    # The name of the picture's file, without `.svg`.
    name: str
    # The heading of the chart.
    title: str
    # The figures, each with its words in the chart.
    figures: dict[str, str]
    # Whether rows are the groups of bars and figures the colours; otherwise figures are the groups and rows the
    # colours.
    by_row: bool = False


PLOTS_OF_RESULTS = (
    Plot("publisher", "publisher-cpu", "CPU seconds per million mutations", {"cpu_s_per_million": "less is better"}),
    Plot("publisher", "publisher-rate", "Mutations per second", {"rows_per_second": "more is better"}),
    Plot("publisher", "publisher-memory", "Peak memory in MB", {"peak_rss_mb": "less is better"}),
    Plot("materializer", "materializer-cpu", "CPU seconds per million updates", {"cpu_s_per_million": "whole job"}),
    Plot("materializer", "materializer-rate", "Updates per second", {"rows_per_second": "more is better"}),
    Plot(
        "latency",
        "latency",
        "From a write to its change, ms",
        {"change p50": "p50", "change p99": "p99", "change p99.9": "p99.9"},
        by_row=True,
    ),
    Plot(
        "scale",
        "scale",
        "Updates per second, by workers",
        {"measured": "measured", "simulated": "simulated"},
        by_row=True,
    ),
)


def draw(benchmark: str) -> list[Path]:
    """Draw the benchmark's plots. The files."""
    found = RESULTS / f"{benchmark}.json"
    results: dict[str, Mapping[str, float]] = json.loads(found.read_text(encoding="utf-8"))["results"]
    return [_draw(plot, results) for plot in PLOTS_OF_RESULTS if plot.benchmark == benchmark]


def _draw(plot: Plot, results: Mapping[str, Mapping[str, float]]) -> Path:
    chart = pygal.Bar(
        title=plot.title,
        style=_STYLE,
        js=[],  # no script in the file
        height=380,
        width=760,
        print_values=True,
        value_formatter=lambda value: f"{value:,.0f}" if value >= 100 else f"{value:,.1f}",
        legend_at_bottom=True,
        include_x_axis=True,
        disable_xml_declaration=True,
        no_prefix=True,  # of a random id
    )
    if plot.by_row:
        chart.x_labels = list(results)
        for figure, label in plot.figures.items():
            chart.add(label, [result.get(figure) for result in results.values()])
    else:
        chart.x_labels = list(plot.figures.values())
        for row, figures in results.items():
            chart.add(row, [figures.get(figure) for figure in plot.figures])
    PLOTS.mkdir(exist_ok=True)
    file = PLOTS / f"{plot.name}.svg"
    file.write_text(chart.render() + "\n", encoding="utf-8")
    return file


def main() -> int:
    for benchmark in dict.fromkeys(plot.benchmark for plot in PLOTS_OF_RESULTS):
        if (RESULTS / f"{benchmark}.json").exists():
            sys.stdout.writelines(f"{file}\n" for file in draw(benchmark))
    return 0


if __name__ == "__main__":
    sys.exit(main())
