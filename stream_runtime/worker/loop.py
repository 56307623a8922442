"""The loop of a worker: it polls and processes its shares for the time of a batch, and reports.

A worker is a Python process of an executor, which has one for each core that runs a task, and lives as long as the
executor. Its loop keeps shares open from one batch to the next. If the worker is lost, another one goes on from the
committed positions. A failure of one share stops only that share.
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
from stream_runtime.worker.task import TaskResult, WorkerStatus, return_in_time

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from stream_runtime.exactly_once.report import Report
    from stream_runtime.records import Share
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
        """The results of the shares that were processed or failed.

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
        self._results: dict[Share, TaskResult] = {}
        self._logged: dict[Share, str] = {}

    @abstractmethod
    def begin_batch(self, plan: P, assignment: Assignment) -> None:
        """Open and close shares, so that those of the assignment are open."""

    @abstractmethod
    def poll_and_process(self, plan: P, assignment: Assignment) -> None:
        """Read once, and process the messages."""

    @abstractmethod
    def forget(self, share: Share) -> None:
        """Close a share. A later batch reads it again from its committed position."""

    @abstractmethod
    def status(self) -> WorkerStatus:
        """The worker's status at the end of its time."""

    @abstractmethod
    def close(self) -> None: ...

    def results(self, _plan: P) -> list[TaskResult]:
        """The results that the driver gets at the end of a batch."""
        return list(self._results.values())

    def run_batch(self, plan: P, assignment: Assignment, may_go_on: MayGoOn = return_in_time) -> list[TaskResult]:
        """Poll at least once, until the time is over. A share that fails is left out from then on."""
        ask_at = time.monotonic() + assignment.seconds
        self._results = {}
        self.begin_batch(plan, assignment)
        while True:
            self.poll_and_process(plan, assignment)
            now = time.monotonic()
            if now >= ask_at:
                if not may_go_on(self.status()):
                    return self.results(plan)
                ask_at = now + _ASK_SECONDS

    @property
    def failed(self) -> set[Share]:
        """The shares that have failed in this batch."""
        return {share for share, result in self._results.items() if result.error is not None}

    @contextmanager
    def isolated(self, share: Share, doing: str, records: Sequence[HasOffset] = ()) -> Iterator[None]:
        """A failure in it stops only this share, for this batch. records: those that are being processed."""
        try:
            with driver_errors(doing):
                yield
        except ProducerExpiredError as error:
            self.renew(share, error, records)
        except CdcError as error:
            self.fail(share, error, offsets_of(records))
        except Exception as error:  # noqa: BLE001 - a defect that one share's data meets must not stop the others
            self.fail(share, unexpected(str(share), error), offsets_of(records), trace_of(error))

    def renew(self, share: Share, error: CdcError, records: Sequence[HasOffset]) -> None:
        """The brokers have forgotten the share's idle producer."""
        self.fail(share, error, offsets_of(records))

    def add_report(self, share: Share, report: Report) -> None:
        before = self._results.get(share)
        if before is not None and before.report is not None:
            report = before.report.and_then(report)
        self._results[share] = TaskResult(share, report, None)

    def fail_all(self, shares: Iterable[Share], error: CdcError) -> None:
        for share in shares:
            self.fail(share, error)

    def fail(self, share: Share, error: CdcError, offsets: tuple[int, int] | None = None, trace: str = "") -> None:
        """Stop the share for this batch. offsets: the first and the next one of the messages that failed."""
        if trace and self._logged.get(share) != error.problem:
            self._logged[share] = error.problem
            event = f"{self._words.partition} stopped"
            _logger.error(event, problem=error.problem, offsets=offsets, trace=trace)
        before = self._results.get(share)
        report = None if before is None else before.report
        self._results[share] = TaskResult(share, report, error, offsets, trace)
        self.forget(share)


def offsets_of(records: Sequence[HasOffset]) -> tuple[int, int] | None:
    """The first and the next offset of records; None without any."""
    return (records[0].offset, records[-1].offset + 1) if records else None


def poll_seconds(trigger_interval_ms: int) -> float:
    """How long one poll waits for messages."""
    return max(trigger_interval_ms / 1000, _MIN_POLL_SECONDS)
