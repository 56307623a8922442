"""A streaming query of NotingTasks in a Spark session, without Kafka."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from materializer.errors import RAW_FAULTS
from materializer.settings import MaterializerSettings
from stream_runtime.driver.placement import Placement
from stream_runtime.query.spark_session import OpenedSession
from stream_runtime.query.streaming import StreamingWorkers
from stream_runtime.worker.task import Assignment
from tests.support.materializer.streaming_task import NotingTask, read_folded
from tests.support.stream_runtime.shares import share

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from stream_runtime.worker.task import TaskResult

RAW = [share("cdc.raw.shop.orders", number) for number in range(4)]


class Job:
    """A query in the session, and its placement."""

    def __init__(self, session: SparkSession, folder: Path, name: str = "the-group") -> None:
        self.folder = folder
        self.workers = StreamingWorkers(
            OpenedSession(session, is_own=False), MaterializerSettings(), (), RAW_FAULTS.words
        )
        self.workers.start(name)
        self._placement = Placement()
        self.rounds = 0

    def run(self, seconds: float = 0.0, *, is_cut: bool = True, **task: Any) -> list[TaskResult]:  # noqa: ANN401
        """One round, which ends as soon as its tasks do if it is cut."""
        self.rounds += 1
        placed = self._placement.assign(RAW, self.workers.list_workers(len(RAW)))
        assignments = {name: Assignment(tuple(shares), 100, 0.0) for name, shares in placed.items() if shares}
        noting: Any = NotingTask(self.folder, self.rounds, seconds, **task)
        return self.workers.run_task(noting, assignments, lambda: is_cut)

    def run_until_all(self) -> None:
        """Run until each raw partition is folded in one round: at first some executor may be missing."""
        deadline = time.monotonic() + 60
        while len(self.run()) < len(RAW):
            assert time.monotonic() < deadline

    def check_nothing_twice(self) -> None:
        folded = [(fold.round, fold.raw_partition) for fold in read_folded(self.folder)]
        assert len(folded) == len(set(folded))
