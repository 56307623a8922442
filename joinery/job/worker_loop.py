"""A worker reads its shares, routes or joins the messages and commits them (stream_runtime.worker.loop)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from cdc_common.errors.codes import CdcError
from joinery.faults import JOIN_FAULTS
from joinery.job.open_shares import OpenShares
from stream_runtime.exactly_once.partition_task import NotOwnerError
from stream_runtime.exactly_once.report import NOTHING_DONE
from stream_runtime.worker.loop import LoopTask, WorkerLoop, poll_seconds
from stream_runtime.worker.task import WorkerStatus

if TYPE_CHECKING:
    from collections.abc import Hashable

    from joinery.records import Definitions, JoineryPlan
    from stream_runtime.kafka.source_reader import Read
    from stream_runtime.records import Share
    from stream_runtime.worker.task import Assignment

_logger = structlog.get_logger(__name__)


class JoineryTask(LoopTask["JoineryPlan"]):
    """Routes and joins in a worker."""

    def loop_key(self, plan: JoineryPlan) -> Hashable:
        return "joinery", plan.definitions.settings.group_id

    def make_loop(self, plan: JoineryPlan) -> JoineryLoop:
        return JoineryLoop(plan.definitions)


class JoineryLoop(WorkerLoop["JoineryPlan"]):
    """A worker's open shares of joins. Each has one partition."""

    def __init__(self, definitions: Definitions) -> None:
        super().__init__(JOIN_FAULTS.words)
        self._poll_seconds = poll_seconds(definitions.settings.trigger_interval_ms)
        self._shares = OpenShares(definitions)
        self._assigned: set[Share] = set()
        self._is_behind = False

    def begin_batch(self, plan: JoineryPlan, assignment: Assignment) -> None:
        self._assigned = set(assignment.shares)
        self._shares.keep(plan, self._assigned)

    def poll_and_process(self, plan: JoineryPlan, assignment: Assignment) -> None:
        for share in sorted(self._assigned - self._shares.shares - self.failed):
            with self.isolated(share, f"open {share}"):
                self._shares.open(plan, share)
        count = 0
        for reader, read in self._shares.read(assignment.max_messages, self._poll_seconds):
            shares = self._shares.of_reader(reader)
            if isinstance(read, CdcError):
                self.fail_all(shares, read)
                continue
            count += sum(self._process(share, read) for share in shares)
        self._is_behind = count >= assignment.max_messages

    def status(self) -> WorkerStatus:
        return WorkerStatus(is_behind=self._is_behind, has_failed=bool(self.failed))

    def forget(self, share: Share) -> None:
        self._shares.close(share)

    def close(self) -> None:
        self._shares.close_all()

    def _process(self, share: Share, read: Read) -> int:
        """Route or join the messages that were read of a share. Return their number."""
        source = share.partition
        records = read.records.get(source, [])
        with self.isolated(share, f"join messages of {share}", records):
            try:
                done = self._shares.process(share, records, read.following.get(source))
            except NotOwnerError:  # the next round opens it again, at the committed position
                self.forget(share)
                return len(records)
            if done.report.chunks:
                self.add_report(share, done.report)
            if done.error is not None:
                self.fail(share, done.error, (done.report.end, done.report.end + 1))
            elif source in read.errors:
                self.fail(share, read.errors[source])
        return len(records)

    def renew(self, share: Share, error: CdcError, _records: object) -> None:
        """Close the share. The next round opens it again, with a new producer, at its committed offset."""
        _logger.warning("producer renewed", partition=str(share), problem=error.problem)
        self._shares.close(share)
        self.add_report(share, NOTHING_DONE._replace(renewed=1))
