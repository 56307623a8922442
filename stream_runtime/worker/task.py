"""The messages between the driver and a worker: an assignment, a task and its results."""

from __future__ import annotations

import zipimport
from collections.abc import Callable
from typing import NamedTuple, Protocol

from cdc_common.errors.codes import CdcError
from stream_runtime.exactly_once.report import Report
from stream_runtime.records import Share


class Assignment(NamedTuple):
    """The work of one worker in a batch."""

    # The worker reads and processes these.
    shares: tuple[Share, ...]
    # How many unprocessed messages it holds at most, heartbeats of idle shares not counted.
    max_messages: int
    # How long it works at least. It goes on until the driver ends the batch.
    seconds: float
    # Those of the shares that are still stopped. They do not sleep, so that they tell whether they work.
    retried: tuple[Share, ...] = ()


class WorkerStatus(NamedTuple):
    """A worker's status at the end of its time."""

    # Messages of several shares are left.
    is_behind: bool = False
    # A share has failed.
    has_failed: bool = False
    # A state is being fetched.
    is_restoring: bool = False


MayGoOn = Callable[[WorkerStatus], bool]
"""A worker calls it when its time is over, to find out whether it is to go on for a while."""


def return_in_time(_status: WorkerStatus) -> bool:
    """A MayGoOn that always says no."""
    return False


class TaskResult(NamedTuple):
    """The result of a share in a batch."""

    # The share.
    share: Share
    # The messages that were processed; None if there were none.
    report: Report | None
    # Why the share has stopped then.
    error: CdcError | None
    # As Failure's.
    offsets: tuple[int, int] | None = None
    # As Failure's.
    trace: str = ""


class Task(Protocol):
    """The function that a worker runs in a batch. It is pickled."""

    def __call__(self, assignment: Assignment, may_go_on: MayGoOn, /) -> list[TaskResult]:
        """The results of the shares that were worked on or failed.

        Spark handles an exception of the task itself: it runs the task again, here or in another process.
        """
        ...


def _keep_caches(_importer: zipimport.zipimporter) -> None:
    """PySpark calls importlib.invalidate_caches() for each task, which makes Python 3.11 read the directories of the
    zip files on its path again: 200 ms of CPU a task (measured).
    """


zipimport.zipimporter.invalidate_caches = _keep_caches  # type: ignore[method-assign,assignment]
