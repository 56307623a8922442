"""A worker reads its partitions, transforms the messages and commits them (stream_runtime.worker.loop)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from cdc_common.errors.codes import CdcError
from stream_runtime.exactly_once.report import NOTHING_DONE
from stream_runtime.worker.loop import LoopTask, WorkerLoop, poll_seconds
from stream_runtime.worker.task import Standing
from transformer.faults import STREAM_FAULTS
from transformer.job.open_streams import OpenStreams

if TYPE_CHECKING:
    from collections.abc import Hashable

    from stream_runtime.kafka.source_reader import Read
    from stream_runtime.records import SourcePartition
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
    """A worker's open partitions of streams."""

    def __init__(self, definitions: Definitions) -> None:
        super().__init__(STREAM_FAULTS.words)
        self._poll_seconds = poll_seconds(definitions.settings.trigger_interval_ms)
        self._streams = OpenStreams(definitions)
        self._assigned: set[SourcePartition] = set()
        self._is_behind = False

    def begin_batch(self, plan: TransformPlan, assignment: Assignment) -> None:
        self._assigned = set(assignment.partitions)
        self._streams.keep(plan, self._assigned)

    def poll_and_process(self, plan: TransformPlan, assignment: Assignment) -> None:
        for partition in sorted(self._assigned - self._streams.partitions - self.failed):
            with self.isolated(partition, f"open {partition}"):
                self._streams.open(plan, partition)
        count = 0
        for transformer, read in self._streams.read(assignment.max_messages, self._poll_seconds):
            partitions = self._streams.of_transformer(transformer)
            if isinstance(read, CdcError):
                self.fail_all(partitions, read)
                continue
            count += sum(self._process(partition, read) for partition in partitions)
        self._is_behind = count >= assignment.max_messages

    def standing(self) -> Standing:
        return Standing(is_behind=self._is_behind, has_failed=bool(self.failed))

    def forget(self, partition: SourcePartition) -> None:
        self._streams.close(partition)

    def close(self) -> None:
        self._streams.close_all()

    def _process(self, partition: SourcePartition, read: Read) -> int:
        """Transform what was read of a partition: how many messages."""
        source = self._streams.source(partition)
        records = read.records.get(source, [])
        with self.isolated(partition, f"transform messages of {partition}", records):
            done = self._streams.process(partition, records, read.following.get(source))
            if done.report.chunks:
                self.add_report(partition, done.report)
            if done.error is not None:
                self.fail(partition, done.error, (done.report.end, done.report.end + 1))
            elif source in read.errors:
                self.fail(partition, read.errors[source])
        return len(records)

    def renew(self, partition: SourcePartition, error: CdcError, _records: object) -> None:
        """Close the partition. The next round opens it again, with a new producer, at its committed offset."""
        _logger.warning("producer renewed", partition=str(partition), problem=error.problem)
        self._streams.close(partition)
        self.add_report(partition, NOTHING_DONE._replace(renewed=1))
