"""The loop of a worker: it polls and processes its partitions for the time of a batch, and reports.

A worker is a Python process of an executor, which has one for each core that runs a task, and lives as long as the
executor. Its loop keeps partitions open from one batch to the next. If the worker is lost, another one goes on from the
committed positions. What fails for one partition stops only that.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import structlog

from cdc_common.errors.codes import CdcError
from stream_runtime.errors import trace_of, unexpected
from stream_runtime.kafka import ProducerExpiredError, driver_errors
from stream_runtime.worker.task import Standing, TaskResult, return_in_time

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from stream_runtime.exactly_once.report import Report
    from stream_runtime.records import SourcePartition
    from stream_runtime.words import Words
    from stream_runtime.worker.task import Assignment, MayGoOn

_logger = structlog.get_logger(__name__)
_ASK_SECONDS = 0.25  # between two questions whether to go on
_MIN_POLL_SECONDS = 0.01


class HasOffset(Protocol):
    @property
    def offset(self) -> int: ...


P = TypeVar("P")


class LoopTask(ABC, Generic[P]):
    """The function that Spark runs in the workers. A job makes a subclass. P is its plan of a batch."""

    def __init__(self, plan: P) -> None:
        self._plan = plan

    @abstractmethod
    def loop_key(self, plan: P) -> Hashable:
        """A process has one loop for each key."""

    @abstractmethod
    def make_loop(self, plan: P) -> WorkerLoop[P]: ...

    def __call__(self, assignment: Assignment, may_go_on: MayGoOn = return_in_time) -> list[TaskResult]:
        """The results of the partitions that were processed or failed.

        Spark handles an exception of the loop itself: it runs the task again, here or in another process.
        """
        os.umask(0o077)
        key = self.loop_key(self._plan)
        loop = loops.get(key)
        if loop is None:
            loop = loops[key] = self.make_loop(self._plan)
        try:
            return loop.run_batch(self._plan, assignment, may_go_on)
        except Exception:
            loops.pop(key).close()  # another attempt begins with a new one
            raise


loops: dict[Hashable, WorkerLoop[Any]] = {}
"""The loops of this process."""


class WorkerLoop(ABC, Generic[P]):
    """A job makes a subclass. P is its plan of a batch."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._results: dict[SourcePartition, TaskResult] = {}
        self._logged: dict[SourcePartition, str] = {}

    @abstractmethod
    def begin_batch(self, plan: P, assignment: Assignment) -> None:
        """Open and close partitions, so that those of the assignment are open."""

    @abstractmethod
    def poll_and_process(self, plan: P, assignment: Assignment) -> None:
        """Read once, and process what was read."""

    @abstractmethod
    def forget(self, partition: SourcePartition) -> None:
        """Close a partition. A later batch reads it again from its committed position."""

    @abstractmethod
    def standing(self) -> Standing:
        """The worker's state at the end of its time."""

    @abstractmethod
    def close(self) -> None: ...

    def results(self, _plan: P) -> list[TaskResult]:
        """What the driver gets at the end of a batch."""
        return list(self._results.values())

    def run_batch(self, plan: P, assignment: Assignment, may_go_on: MayGoOn = return_in_time) -> list[TaskResult]:
        """Poll at least once, until the time is over. A partition that fails is left out from then on."""
        ask_at = time.monotonic() + assignment.seconds
        self._results = {}
        self.begin_batch(plan, assignment)
        while True:
            self.poll_and_process(plan, assignment)
            now = time.monotonic()
            if now >= ask_at:
                if not may_go_on(self.standing()):
                    return self.results(plan)
                ask_at = now + _ASK_SECONDS

    @property
    def failed(self) -> set[SourcePartition]:
        """The partitions that have failed in this batch."""
        return {partition for partition, result in self._results.items() if result.error is not None}

    @contextmanager
    def isolated(self, partition: SourcePartition, doing: str, records: Sequence[HasOffset] = ()) -> Iterator[None]:
        """What fails in it stops the partition for this batch. records: those that are being processed."""
        try:
            with driver_errors(doing):
                yield
        except ProducerExpiredError as error:
            self.renew(partition, error, records)
        except CdcError as error:
            self.fail(partition, error, offsets_of(records))
        except Exception as error:  # noqa: BLE001 - a defect that one partition's data meets must not stop the others
            self.fail(partition, unexpected(str(partition), error), offsets_of(records), trace_of(error))

    def renew(self, partition: SourcePartition, error: CdcError, records: Sequence[HasOffset]) -> None:
        """The brokers have forgotten the partition's idle producer."""
        self.fail(partition, error, offsets_of(records))

    def add_report(self, partition: SourcePartition, report: Report) -> None:
        before = self._results.get(partition)
        if before is not None and before.report is not None:
            report = before.report.and_then(report)
        self._results[partition] = TaskResult(partition, report, None)

    def fail_all(self, partitions: Iterable[SourcePartition], error: CdcError) -> None:
        for partition in partitions:
            self.fail(partition, error)

    def fail(
        self, partition: SourcePartition, error: CdcError, offsets: tuple[int, int] | None = None, trace: str = ""
    ) -> None:
        """Stop the partition for this batch. offsets: the first and the next one of the messages that failed."""
        if trace and self._logged.get(partition) != error.problem:
            self._logged[partition] = error.problem
            event = f"{self._words.partition} stopped"
            _logger.error(event, problem=error.problem, offsets=offsets, trace=trace)
        before = self._results.get(partition)
        report = None if before is None else before.report
        self._results[partition] = TaskResult(partition, report, error, offsets, trace)
        self.forget(partition)


def offsets_of(records: Sequence[HasOffset]) -> tuple[int, int] | None:
    """The first and the next offset of records; None without any."""
    return (records[0].offset, records[-1].offset + 1) if records else None


def poll_seconds(trigger_interval_ms: int) -> float:
    """How long one poll waits for messages."""
    return max(trigger_interval_ms / 1000, _MIN_POLL_SECONDS)
