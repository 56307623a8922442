"""Spark's streaming source `cassandra_cdc`: each micro-batch is a round, each task does what its process has claimed.

The source yields a row for each message that was folded, so that Spark counts them. All rows are empty but those
with a report, a pickled TaskResult. The messages themselves never enter Spark's JVM: a task reads them from Kafka,
folds them, and commits its changes in Kafka's transactions.
"""

from __future__ import annotations

import os
import pickle
import sys
from multiprocessing.connection import Client
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from stream_runtime.query.task_pickle import loads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.connection import Connection

    from pyspark.sql.types import StructType

    from stream_runtime.query.rounds import ServiceAddress
    from stream_runtime.worker.task import Task, TaskResult, WorkerStatus

FORMAT = "cassandra_cdc"
SCHEMA = "report binary"
_ARROW_SCHEMA = pa.schema([("report", pa.binary())])


class Slot(InputPartition):
    """A task of a round. Which shares it processes depends on the process that runs it."""

    def __init__(self, number: int) -> None:
        super().__init__(None)
        self.round = number


def source(address: ServiceAddress, known: Sequence[object] = ()) -> type[DataSource]:
    """The source that takes its rounds from there. The class is pickled whole, so the key shows in no option.

    known: as task_pickle's: the settings.
    """

    class CassandraCdc(DataSource):
        @classmethod
        def name(cls) -> str:
            return FORMAT

        def schema(self) -> str:
            return SCHEMA

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's
            return RoundReader(address, known)

    return CassandraCdc


class RoundReader(DataSourceStreamReader):
    """Runs in two places: Spark's planner process asks for rounds, and worker processes read them."""

    def __init__(self, address: ServiceAddress, known: Sequence[object] = ()) -> None:
        self._address = address
        self._known = known
        self._offset: dict[str, Any] = {"round": 0}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's
        return {"round": 0}

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's
        """The next round, and the positions before it. The same round again if there is none yet."""
        number, positions = _ask(self._address, "next", self._offset["round"])
        if number != self._offset["round"]:
            self._offset = {"round": number, "positions": positions}
        return self._offset

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Slot]:  # noqa: ARG002
        return [Slot(end["round"]) for _ in range(_ask(self._address, "plan", end["round"]))]

    def stop(self) -> None:
        """The planner process ends. Spark 4.0 has closed its socket by now, and the process would print that it can't
        report this: a trace in the driver's output, at each stop.
        """
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stderr.fileno())

    def read(self, slot: Slot) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """Do what this process is to do in the round."""
        claimed = _claim(self._address, slot.round, self._known)
        if claimed is None:
            return
        task, assignment = claimed

        def may_go_on(status: WorkerStatus) -> bool:
            return bool(_ask(self._address, "over", slot.round, status))

        try:
            results = task(assignment, may_go_on)
        except Exception:
            _ask(self._address, "release")
            raise
        yield from map(_rows, results)


def reports(rows: list[Any]) -> list[TaskResult]:
    """The results in the rows of a micro-batch."""
    return [pickle.loads(row.report) for row in rows]  # noqa: S301 - from our own tasks


def _rows(result: TaskResult) -> pa.RecordBatch:
    """A row for each message. The last one has the report; without any message it is a row of its own."""
    empty = max(0, result.report.messages - 1) if result.report is not None else 0
    column = pa.concat_arrays([pa.nulls(empty, pa.binary()), pa.array([pickle.dumps(result)], pa.binary())])
    return pa.RecordBatch.from_arrays([column], schema=_ARROW_SCHEMA)


# Of this process: Spark makes a reader for each task.
_connections: dict[ServiceAddress, Connection[Any, Any]] = {}
_tasks: dict[ServiceAddress, tuple[int, Task | None]] = {}


def _claim(address: ServiceAddress, number: int, known_objects: Sequence[object]) -> tuple[Task, Any] | None:
    known_version, task = _tasks.get(address, (0, None))
    assignment, version, pickled = _ask(address, "claim", number, known_version)
    if assignment is None:
        return None
    if pickled is not None:
        task = loads(pickled, known_objects)
        _tasks[address] = version, task
    assert task is not None
    return task, assignment


def _ask(address: ServiceAddress, *question: object) -> Any:  # noqa: ANN401 - what the question's answer is
    """An OSError or EOFError if the driver is gone: then the task fails, as it must."""
    connection = _connections.get(address)
    if connection is None:
        connection = _connections[address] = Client((address.host, address.port), authkey=address.key)
    try:
        connection.send(question)
        return connection.recv()
    except (OSError, EOFError):
        _connections.pop(address).close()
        raise
