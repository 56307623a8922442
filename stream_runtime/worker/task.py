"""What the driver gives to a worker, and what it gets back."""

from __future__ import annotations

import zipimport
from collections.abc import Callable
from typing import NamedTuple, Protocol

from cdc_common.errors.codes import CdcError
from stream_runtime.exactly_once.report import Report
from stream_runtime.records import SourcePartition


class Assignment(NamedTuple):
    """What one worker does in a batch: it reads and processes these partitions for `seconds`, and then until the driver
    ends the batch.

    max_messages: how many unprocessed messages it holds at most, heartbeats of idle partitions not counted.
    retried: those that are stopped still: they do not sleep, so that they tell whether they work.
    """

    partitions: tuple[SourcePartition, ...]
    max_messages: int
    seconds: float
    retried: tuple[SourcePartition, ...] = ()


class Standing(NamedTuple):
    """A worker's state at the end of its time. is_behind: it has messages of several partitions left. has_failed: a
    partition has failed. is_restoring: a state is being fetched.
    """

    is_behind: bool = False
    has_failed: bool = False
    is_restoring: bool = False


MayGoOn = Callable[[Standing], bool]
"""What a worker asks when its time is over: whether it is to go on for a while."""


def return_in_time(_standing: Standing) -> bool:
    """A MayGoOn that always says no."""
    return False


class TaskResult(NamedTuple):
    """The result of a partition in a batch: what was processed, and the error that has stopped it then.

    offsets, trace: as Failure's.
    """

    partition: SourcePartition
    report: Report | None
    error: CdcError | None
    offsets: tuple[int, int] | None = None
    trace: str = ""


class Task(Protocol):
    """What a worker does in a batch. It is pickled."""

    def __call__(self, assignment: Assignment, may_go_on: MayGoOn, /) -> list[TaskResult]:
        """The results of the partitions that were worked on or failed.

        Spark handles an exception of the task itself: it runs the task again, here or in another process.
        """
        ...


def _keep_caches(_importer: zipimport.zipimporter) -> None:
    """PySpark calls importlib.invalidate_caches() for each task, which makes Python 3.11 read the directories of the
    zip files on its path again: 200 ms of CPU a task (measured).
    """


zipimport.zipimporter.invalidate_caches = _keep_caches  # type: ignore[method-assign,assignment]
