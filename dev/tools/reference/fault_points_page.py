"""The end of docs/internals/fault-points.md, from the fault points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.fault_points import ArchivePoint
from dev.verify.chaos.faults import StackFault
from dev.verify.chaos.matrix import Action
from joinery.fault_points import JoinRebuildPoint
from materializer.fault_points import RebuildPoint, ReshardPoint
from stream_runtime.fault_points import FaultPoint, StatelessPoint
from warehouse.fault_points import WarehousePoint, WriterPoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stream_runtime.fault_points import Point

HEADING = "## The points\n"


def with_fault_points(page: str) -> str:
    """The page with a fresh last section."""
    before, _, _ = page.partition(HEADING)
    return before + HEADING + "\n" + table()


def table() -> str:
    lines = [
        "At each of these points, in the order of a task's steps:",
        "",
        *(f"- {action.value}" for action in Action),
        "",
        "| the worker dies at | what holds, and what the next task does |",
        "| --- | --- |",
        *_rows(FaultPoint),
        "",
        "The same is tested while all rows of a raw partition move to another change topic",
        "(`dev/verify/chaos/move_matrix.py`): at all points except `after_adopt`, and also after a worker died during",
        "the move and lost its local state. A move is done in parts. Each part is a chunk at the same raw offset, and",
        "the next task continues after the last part, into the same topic.",
        "",
        "These faults happen at random moments under load, with Cassandra, Kafka and Spark:",
        "",
        *(f"- {fault.value}" for fault in StackFault),
        "",
        "`cassandra-materializer state reshard` is killed at each of these points, in the order of its steps, and run",
        "again, while a publisher that does not know the new partitions writes",
        "(`tests/servers/materializer/commands/test_reshard.py`):",
        "",
        "| the command dies at | what holds, and what the next run does |",
        "| --- | --- |",
        *_rows(ReshardPoint),
        "",
        "Until a run completes, the topic's raw partitions stay stopped in the job (`CDC-054`).",
        "",
        "`cassandra-materializer rebuild` is killed at each of these points and run again, while a publisher continues",
        "(`tests/servers/materializer/commands/test_rebuild.py`):",
        "",
        "| the command dies at | what holds, and what the next run does |",
        "| --- | --- |",
        *_rows(RebuildPoint),
        "",
        "Until a run completes, the topic's raw partitions stay stopped in the job (`CDC-051`).",
        "",
        "`cassandra-joinery rebuild` fails at each of these points and is run again",
        "(`tests/servers/joinery/test_rebuild.py`):",
        "",
        "| the command dies at | what holds, and what the next run does |",
        "| --- | --- |",
        *_rows(JoinRebuildPoint),
        "",
        "Until a run completes, the join's partitions stay stopped in the job (`CDC-051`).",
        "",
        "A worker of `cassandra-transformer` dies at each of these points, in each of the ways above",
        "(`dev/verify/chaos/transform_matrix.py`):",
        "",
        "| the worker dies at | what holds, and what the next task does |",
        "| --- | --- |",
        *_rows(StatelessPoint),
        "",
        "A worker of `cassandra-archive` fails at each of these points, and its successor finishes its cut",
        "(`tests/unit/archive/writer/test_crashes.py`; on a broker, killed: `tests/servers/archive/test_kill.py`):",
        "",
        "| the worker dies at | what holds, and what the next task does |",
        "| --- | --- |",
        *_rows(ArchivePoint),
        "",
        "A worker of `cassandra-warehouse` fails at each of these points, and its successor loads what is missing",
        "(`tests/unit/warehouse/loading/test_load.py`; on a broker, killed: `tests/servers/warehouse/test_kill.py`):",
        "",
        "| the worker dies at | what holds, and what the next task does |",
        "| --- | --- |",
        *_rows(WarehousePoint),
        "",
        "A writer of `cassandra-warehouse` fails at each of these points, and its successor finishes its batch",
        "(`tests/unit/warehouse/writing/test_batch_task.py`; on a broker, killed:",
        "`tests/servers/warehouse/test_objects_kill.py`):",
        "",
        "| the worker dies at | what holds, and what the next task does |",
        "| --- | --- |",
        *_rows(WriterPoint),
    ]
    return "\n".join(lines) + "\n"


def _rows(points: Iterable[Point]) -> Iterator[str]:
    return (f"| `{point.name.lower()}` | {point.value} |" for point in points)
