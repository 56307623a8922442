"""A worker reads its shares, transforms the messages and commits them (stream_runtime.worker.loop)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from cdc_common.errors.codes import CdcError
from stream_runtime.exactly_once.report import NOTHING_DONE
from stream_runtime.worker.loop import LoopTask, WorkerLoop, poll_seconds
from stream_runtime.worker.task import WorkerStatus
from transformer.faults import STREAM_FAULTS
from transformer.job.open_streams import OpenStreams

if TYPE_CHECKING:
    from collections.abc import Hashable

    from stream_runtime.kafka.source_reader import Read
    from stream_runtime.records import Share
    from stream_runtime.worker.task import Assignment
    from transformer.records import Definitions, TransformPlan

_logger = structlog.get_logger(__name__)


class TransformTask(LoopTask["TransformPlan"]):
    """Transforms in a worker."""

    def loop_key(self, plan: TransformPlan) -> Hashable:
        return "transformer", plan.definitions.settings.group_id

    def make_loop(self, plan: TransformPlan) -> TransformLoop:
        return TransformLoop(plan.definitions)


class TransformLoop(WorkerLoop["TransformPlan"]):
    """A worker's open shares of streams. Each has one partition."""

    def __init__(self, definitions: Definitions) -> None:
        super().__init__(STREAM_FAULTS.words)
        self._poll_seconds = poll_seconds(definitions.settings.trigger_interval_ms)
        self._streams = OpenStreams(definitions)
        self._assigned: set[Share] = set()
        self._is_behind = False

    def begin_batch(self, plan: TransformPlan, assignment: Assignment) -> None:
        self._assigned = set(assignment.shares)
        self._streams.keep(plan, self._assigned)

    def poll_and_process(self, plan: TransformPlan, assignment: Assignment) -> None:
        for share in sorted(self._assigned - self._streams.shares - self.failed):
            with self.isolated(share, f"open {share}"):
                self._streams.open(plan, share)
        count = 0
        for transformer, read in self._streams.read(assignment.max_messages, self._poll_seconds):
            shares = self._streams.of_transformer(transformer)
            if isinstance(read, CdcError):
                self.fail_all(shares, read)
                continue
            count += sum(self._process(share, read) for share in shares)
        self._is_behind = count >= assignment.max_messages

    def status(self) -> WorkerStatus:
        return WorkerStatus(is_behind=self._is_behind, has_failed=bool(self.failed))

    def forget(self, share: Share) -> None:
        self._streams.close(share)

    def close(self) -> None:
        self._streams.close_all()

    def _process(self, share: Share, read: Read) -> int:
        """Transform the messages that were read of a share. Return their number."""
        source = share.partition
        records = read.records.get(source, [])
        with self.isolated(share, f"transform messages of {share}", records):
            done = self._streams.process(share, records, read.following.get(source))
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
        self._streams.close(share)
        self.add_report(share, NOTHING_DONE._replace(renewed=1))
