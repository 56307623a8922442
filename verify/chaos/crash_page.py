"""Writes the end of docs/internals/fault-points.md from the fault points: `python -m verify.chaos.crash_page`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from local_stack.process.paths import project_root
from materializer.fault_points import FaultPoint, RebuildPoint, ReshardPoint, TransformPoint
from verify.chaos.faults import StackFault
from verify.chaos.matrix import Action

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from materializer.fault_points import AnyPoint

PAGE = "docs/internals/fault-points.md"
HEADING = "## The points\n"


def main() -> int:
    page = project_root() / PAGE
    page.write_text(with_table(page.read_text()))
    return 0


def with_table(page: str) -> str:
    """The page with a fresh last section."""
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
        *_rows(FaultPoint),
        "",
        "And under load, with Cassandra, Kafka and Spark, at any moment:",
        "",
        *(f"- {fault.value}" for fault in StackFault),
        "",
        "`cassandra-materializer state reshard` is killed at each of these, in the order of its steps, and run again,",
        "while a publisher that does not know the new partitions writes",
        "(`tests/servers/materializer/commands/test_reshard.py`):",
        "",
        "| the command dies at | what is true then, and what the next run does |",
        "| --- | --- |",
        *_rows(ReshardPoint),
        "",
        "Until a run has come to its end, the topic's raw partitions stay stopped in the job (`CDC-054`).",
        "",
        "`cassandra-materializer rebuild` is killed at each of these, and run again, while a publisher goes on",
        "(`tests/servers/materializer/commands/test_rebuild.py`):",
        "",
        "| the command dies at | what is true then, and what the next run does |",
        "| --- | --- |",
        *_rows(RebuildPoint),
        "",
        "Until a run has come to its end, the topic's raw partitions stay stopped in the job (`CDC-051`).",
        "",
        "A worker of `cassandra-transformer` dies at each of these, in each of the ways above",
        "(`verify/chaos/transform_matrix.py`):",
        "",
        "| the worker dies at | what is true then, and what the next task does |",
        "| --- | --- |",
        *_rows(TransformPoint),
    ]
    return "\n".join(lines) + "\n"


def _rows(points: Iterable[AnyPoint]) -> Iterator[str]:
    return (f"| `{point.name.lower()}` | {point.value} |" for point in points)


if __name__ == "__main__":
    sys.exit(main())
