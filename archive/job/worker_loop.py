"""A worker archives the messages of its shares (stream_runtime.worker.share_loop)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.faults import ARCHIVE_FAULTS
from archive.job.open_archives import OpenArchives
from archive.job.plan import ArchivePlan
from stream_runtime.worker.loop import LoopTask
from stream_runtime.worker.share_loop import ShareLoop

if TYPE_CHECKING:
    from collections.abc import Hashable

    from archive.job.plan import Job
    from stream_runtime.records import Share
    from stream_runtime.worker.task import Assignment, TaskResult


class ArchiveTask(LoopTask[ArchivePlan]):
    """Archives in a worker."""

    def loop_key(self, plan: ArchivePlan) -> Hashable:
        return "archive", plan.job.settings.group_id

    def make_loop(self, plan: ArchivePlan) -> ArchiveLoop:
        return open_loop(plan.job)


class ArchiveLoop(ShareLoop[ArchivePlan]):
    """A worker that reports in each batch what its shares have open, and how long each has worked.

    A cut is reported at its end alone, and most of its time it waits: that says nothing about the load of its share.
    """

    def __init__(self, archives: OpenArchives, trigger_interval_ms: int) -> None:
        super().__init__(ARCHIVE_FAULTS.words, archives, trigger_interval_ms)
        self._archives = archives
        self._retried: set[Share] = set()

    def begin_batch(self, plan: ArchivePlan, assignment: Assignment) -> None:
        super().begin_batch(plan, assignment)
        self._retried = set(assignment.retried)

    def results(self, plan: ArchivePlan) -> list[TaskResult]:
        """As WorkerLoop. A report of a share that is tried again would mean that it works, so it has none of these."""
        for share in self._archives.shares - self._retried:
            self.add_report(share, self._archives.report_open(share))
        return super().results(plan)


def open_loop(job: Job) -> ArchiveLoop:
    """The loop of a worker, without open shares."""
    return ArchiveLoop(OpenArchives(job), job.settings.trigger_interval_ms)
