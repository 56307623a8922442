"""A task for Spark's processes that touches neither Kafka nor a state: it writes down what it folds."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from stream_runtime.exactly_once.report import Report
from stream_runtime.worker.task import TaskResult, WorkerStatus

if TYPE_CHECKING:
    from pathlib import Path

    from stream_runtime.records import Share
    from stream_runtime.worker.task import Assignment, MayGoOn

MESSAGES = 5


class Folded(NamedTuple):
    """A raw partition that was folded in a round, and by which process."""

    round: int
    raw_partition: str
    process: int


class NotingTask:
    """Folds MESSAGES messages of each raw partition, and notes this in the folder.

    fails, fails_once: an exception of the task itself, always or the first time that any process runs it. dies: its
    process ends instead.
    is_behind: it always is. only: the seconds are those of the process that has this raw partition.
    """

    def __init__(
        self,
        folder: Path,
        number: int,
        seconds: float = 0.0,
        *,
        fails: bool = False,
        fails_once: bool = False,
        dies: bool = False,
        is_behind: bool = False,
        only: str = "",
    ) -> None:
        self._folder = folder
        self._number = number
        self._seconds = seconds
        self._fails = fails
        self._fails_once = fails_once
        self._dies = dies
        self._is_behind = is_behind
        self._only = only

    def __call__(self, assignment: Assignment, may_go_on: MayGoOn) -> list[TaskResult]:
        if self._dies:
            os._exit(1)
        if self._fails or (self._fails_once and _is_first(self._folder / "failed")):
            raise ValueError("a defect")
        if self._only in {"", *map(str, assignment.shares)}:
            time.sleep(self._seconds)
        results = [self._fold(share) for share in assignment.shares]
        while may_go_on(WorkerStatus(is_behind=self._is_behind)):
            time.sleep(0.1)
        return results

    def _fold(self, share: Share) -> TaskResult:
        line = f"{self._number} {share} {os.getpid()}\n"
        with (self._folder / "folded").open("a", encoding="ascii") as file:
            file.write(line)
        first = MESSAGES * self._number
        return TaskResult(share, Report(first, first + MESSAGES, MESSAGES, 0, 1, self._seconds), None)


def read_folded(folder: Path) -> list[Folded]:
    """Return the folded shares, in the order of time."""
    lines = (folder / "folded").read_text(encoding="ascii").splitlines()
    return [Folded(int(number), name, int(process)) for number, name, process in (line.split() for line in lines)]


def _is_first(file: Path) -> bool:
    try:
        file.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
