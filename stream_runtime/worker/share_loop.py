"""The worker's loop of a job that opens shares: it reads them, and processes one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from cdc_common.errors.codes import CdcError
from stream_runtime.exactly_once.commits import NotOwnerError
from stream_runtime.exactly_once.report import NOTHING_DONE
from stream_runtime.worker.loop import P, WorkerLoop, poll_seconds
from stream_runtime.worker.task import WorkerStatus

if TYPE_CHECKING:
    from stream_runtime.kafka.source_reader import Read
    from stream_runtime.records import Share
    from stream_runtime.words import Words
    from stream_runtime.worker.open_shares import OpenShares
    from stream_runtime.worker.task import Assignment

_logger = structlog.get_logger(__name__)


class ShareLoop(WorkerLoop[P]):
    """A worker's open shares."""

    def __init__(self, words: Words, shares: OpenShares[P, Any], trigger_interval_ms: int) -> None:
        super().__init__(words)
        self._poll_seconds = poll_seconds(trigger_interval_ms)
        self._shares = shares
        self._is_behind = False

    def begin_batch(self, plan: P, assignment: Assignment) -> None:
        self._shares.keep(plan, assignment)

    def poll_and_process(self, plan: P, assignment: Assignment) -> None:
        for share in sorted(set(assignment.shares) - self._shares.shares - self.failed):
            with self.isolated(share, f"open {share}"):
                report = self._shares.open(plan, share)
                if report is not None:
                    self.add_report(share, report)
        count = 0
        for reader, read in self._shares.read(assignment.max_messages, self._poll_seconds):
            shares = self._shares.of_reader(reader)
            if isinstance(read, CdcError):
                self.fail_all(shares, read)
                continue
            count += sum(self._process(share, read, is_retried=share in assignment.retried) for share in shares)
        self._is_behind = count >= assignment.max_messages

    def status(self) -> WorkerStatus:
        return WorkerStatus(is_behind=self._is_behind, has_failed=bool(self.failed))

    def forget(self, share: Share) -> None:
        self._shares.close(share)

    def close(self) -> None:
        self._shares.close_all()

    def renew(self, share: Share, error: CdcError, _records: object) -> None:
        """Close the share. The next round opens it again, with a new producer, at its committed offsets."""
        _logger.warning("producer renewed", **{self._words.key: str(share)}, problem=error.problem)
        self._shares.close(share)
        self.add_report(share, NOTHING_DONE._replace(renewed=1))

    def _process(self, share: Share, read: Read, *, is_retried: bool) -> int:
        """Process the messages that were read of a share. Return their number."""
        count = sum(len(read.records.get(partition, ())) for partition in share.partitions)
        with self.isolated(share, f"{self._words.do} messages of {share}", self._shares.in_hand(share, read)):
            try:
                done = self._shares.process(share, read)
            except NotOwnerError as error:  # the next round opens it again, at its committed offsets
                event = f"{self._words.partition} taken by another process"
                _logger.warning(event, **{self._words.key: str(share)}, problem=str(error))
                self._shares.close(share)
                return count
            if done.report.chunks or (is_retried and count):  # it works again
                self.add_report(share, done.report)
            problem = next((read.errors[at] for at in share.partitions if at in read.errors), None)
            if done.error is not None:
                self.fail(share, done.error, (done.report.end, done.report.end + 1))
            elif problem is not None:
                self.fail(share, problem)
        return count
