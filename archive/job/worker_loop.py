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


class ArchiveTask(LoopTask[ArchivePlan]):
    """Archives in a worker."""

    def loop_key(self, plan: ArchivePlan) -> Hashable:
        return "archive", plan.job.settings.group_id

    def make_loop(self, plan: ArchivePlan) -> ShareLoop[ArchivePlan]:
        return open_loop(plan.job)


def open_loop(job: Job) -> ShareLoop[ArchivePlan]:
    """The loop of a worker, without open shares."""
    return ShareLoop(ARCHIVE_FAULTS.words, OpenArchives(job), job.settings.trigger_interval_ms)
