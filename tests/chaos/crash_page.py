"""Writes the end of docs/crashes.md from what `make chaos` tries: `python -m tests.chaos.crash_page`."""

from __future__ import annotations

import sys

from local_stack.paths import project_root
from materializer.fault_points import FaultPoint
from tests.chaos.faults import StackFault
from tests.chaos.matrix import Action

PAGE = "docs/crashes.md"
HEADING = "## The points\n"


def main() -> int:
    page = project_root() / PAGE
    page.write_text(with_table(page.read_text()))
    return 0


def with_table(page: str) -> str:
    """The page with its last section made anew."""
    before, _, _ = page.partition(HEADING)
    return before + HEADING + "\n" + table()


def table() -> str:
    lines = [
        "At each of these points, in the order of a task's steps:",
        "",
        *(f"- {action.value}" for action in Action),
        "",
        "| the worker dies at | what is true then, and what the next task does |",
        "| --- | --- |",
        *(f"| `{point.name.lower()}` | {point.value} |" for point in FaultPoint),
        "",
        "And under load, with Cassandra, Kafka and Spark, at any moment:",
        "",
        *(f"- {fault.value}" for fault in StackFault),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
