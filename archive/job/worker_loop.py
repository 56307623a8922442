"""A worker reads its shares, spills their rows and commits their cuts (stream_runtime.worker.loop)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from archive.faults import ARCHIVE_FAULTS
from archive.job.open_shares import OpenShares
from archive.writer.share_task import IntentTakenError
from cdc_common.errors.codes import CdcError
from stream_runtime.exactly_once.report import NOTHING_DONE, Report
from stream_runtime.worker.loop import LoopTask, WorkerLoop, poll_seconds
from stream_runtime.worker.task import WorkerStatus

if TYPE_CHECKING:
    from collections.abc import Hashable

    from archive.job.plan import ArchivePlan, Job
    from archive.writer.report import CutReport
    from stream_runtime.kafka.source_reader import Read
    from stream_runtime.records import Share
    from stream_runtime.worker.task import Assignment

_logger = structlog.get_logger(__name__)


class ArchiveTask(LoopTask["ArchivePlan"]):
    """Archives in a worker."""

    def loop_key(self, plan: ArchivePlan) -> Hashable:
        return "archive", plan.job.settings.group_id

    def make_loop(self, plan: ArchivePlan) -> ArchiveLoop:
        return ArchiveLoop(plan.job)


class ArchiveLoop(WorkerLoop["ArchivePlan"]):
    """A worker's open shares."""

    def __init__(self, job: Job) -> None:
        super().__init__(ARCHIVE_FAULTS.words)
        self._poll_seconds = poll_seconds(job.settings.trigger_interval_ms)
        self._shares = OpenShares(job)
        self._assigned: set[Share] = set()
        self._is_behind = False

    def begin_batch(self, plan: ArchivePlan, assignment: Assignment) -> None:
        self._assigned = set(assignment.shares)
        self._shares.keep(plan, self._assigned)

    def poll_and_process(self, plan: ArchivePlan, assignment: Assignment) -> None:
        for share in sorted(self._assigned - self._shares.shares - self.failed):
            with self.isolated(share, f"open {share}"):
                self._shares.open(plan, share)
        try:
            read = self._shares.read(assignment.max_messages, self._poll_seconds)
        except CdcError as error:
            self.fail_all(self._shares.shares, error)
            return
        retried = set(assignment.retried)
        count = sum(self._process(share, read, is_retried=share in retried) for share in sorted(self._shares.shares))
        self._is_behind = count >= assignment.max_messages

    def status(self) -> WorkerStatus:
        return WorkerStatus(is_behind=self._is_behind, has_failed=bool(self.failed))

    def forget(self, share: Share) -> None:
        self._shares.close(share)

    def close(self) -> None:
        self._shares.close_all()

    def _process(self, share: Share, read: Read, *, is_retried: bool) -> int:
        """Spill what was read of a share, and commit its cut if it ends. Return the number of messages."""
        partitions = self._shares.partitions(share)
        failed = next((read.errors[at] for at in sorted(partitions & read.errors.keys())), None)
        if failed is not None:
            self.fail(share, failed)
            return 0
        count = 0
        with self.isolated(share, f"archive messages of {share}"):
            try:
                count = self._shares.take(share, read)
                report = self._shares.commit_due(share)
            except IntentTakenError as error:
                _logger.warning("intent adopted", share=str(share), intent=str(error))
                self._shares.close(share)
                return count
            if report is not None:
                self.add_report(share, _report(report))
            elif is_retried and count:
                self.add_report(share, NOTHING_DONE)  # it works again
        return count

    def renew(self, share: Share, error: CdcError, _records: object) -> None:
        """Close the share. The next round opens it again, with a new producer, at its committed offsets."""
        _logger.warning("producer renewed", share=str(share), problem=error.problem)
        self._shares.close(share)
        self.add_report(share, NOTHING_DONE._replace(renewed=1))


def _report(cut: CutReport) -> Report:
    native = cut.rows - cut.as_bytes
    return NOTHING_DONE._replace(
        messages=cut.messages, changes=cut.rows, chunks=1, seconds=cut.seconds, native=native, own=cut
    )
