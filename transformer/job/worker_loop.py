"""A Spark task: a worker reads its partitions, transforms the messages and commits them, for the time of a batch.

A worker keeps its partitions open from one batch to the next. If it is lost, another one goes on from the committed
offsets.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import structlog

from cdc_common.errors.codes import CdcError
from stream_runtime.errors import trace_of, unexpected
from stream_runtime.exactly_once.report import NOTHING_DONE, Report
from stream_runtime.kafka import ProducerExpiredError, driver_errors
from stream_runtime.worker.task import Standing, TaskResult
from transformer.job.open_streams import OpenStreams

if TYPE_CHECKING:
    from stream_runtime.kafka.source_reader import Read
    from stream_runtime.records import SourcePartition
    from stream_runtime.worker.task import Assignment, MayGoOn
    from transformer.job.partition_task import Done
    from transformer.records import Definitions, TransformPlan

_logger = structlog.get_logger(__name__)
_ASK_SECONDS = 0.25  # between two questions whether to go on
_MIN_POLL_SECONDS = 0.01


class TransformTask:
    """The function that Spark runs in the workers."""

    def __init__(self, plan: TransformPlan) -> None:
        self._plan = plan

    def __call__(self, assignment: Assignment, may_go_on: MayGoOn) -> list[TaskResult]:
        """Run a batch, as materializer.worker.worker_loop.Task does."""
        os.umask(0o077)
        definitions = self._plan.definitions
        loop = _loops.get(definitions.settings.group_id)
        if loop is None:
            loop = _loops[definitions.settings.group_id] = TransformLoop(definitions)
        try:
            return loop.run_batch(self._plan, assignment, may_go_on)
        except Exception:
            del _loops[definitions.settings.group_id]  # another attempt begins with a new one
            loop.close()
            raise


_loops: dict[str, TransformLoop] = {}


class TransformLoop:
    """A worker's open partitions. What fails for one of them stops only that."""

    def __init__(self, definitions: Definitions) -> None:
        self._poll_seconds = max(definitions.settings.trigger_interval_ms / 1000, _MIN_POLL_SECONDS)
        self._streams = OpenStreams(definitions)
        self._results: dict[SourcePartition, TaskResult] = {}

    def run_batch(self, plan: TransformPlan, assignment: Assignment, may_go_on: MayGoOn) -> list[TaskResult]:
        """Read at least once, until the time is over. A partition that fails is left out from then on."""
        ask_at = time.monotonic() + assignment.seconds
        self._results = {}
        assigned = set(assignment.partitions)
        self._streams.keep(plan, assigned)
        while True:
            for partition in sorted(assigned - self._streams.partitions - self._failed()):
                self._open(plan, partition)
            count = self._work(assignment.max_messages)
            now = time.monotonic()
            if now >= ask_at:
                if not may_go_on(Standing(is_behind=count >= assignment.max_messages, has_failed=bool(self._failed()))):
                    return list(self._results.values())
                ask_at = now + _ASK_SECONDS

    def close(self) -> None:
        self._streams.close_all()

    def _failed(self) -> set[SourcePartition]:
        return {each for each, result in self._results.items() if result.error is not None}

    def _open(self, plan: TransformPlan, partition: SourcePartition) -> None:
        try:
            with driver_errors(f"open {partition}"):
                self._streams.open(plan, partition)
        except CdcError as error:
            self._fail(partition, error)
        except Exception as error:  # noqa: BLE001 - a defect that one stream meets must not stop the others
            self._fail(partition, unexpected(str(partition), error), trace=trace_of(error))

    def _work(self, most: int) -> int:
        """Read and transform once: how many messages were read."""
        count = 0
        for transformer, read in self._streams.read(most, self._poll_seconds):
            if isinstance(read, CdcError):
                for partition in self._streams.of_transformer(transformer):
                    self._fail(partition, read)
                continue
            for partition in self._streams.of_transformer(transformer):
                count += self._process(partition, read)
        return count

    def _process(self, partition: SourcePartition, read: Read) -> int:
        source = self._streams.source(partition)
        records = read.records.get(source, [])
        try:
            with driver_errors(f"transform messages of {partition}"):
                done = self._streams.process(partition, records, read.following.get(source))
            error = read.errors.get(source) if done.error is None else done.error
        except ProducerExpiredError as expired:
            self._renew(partition, expired)
        except CdcError as problem:
            self._fail(partition, problem, (records[0].offset, records[-1].offset + 1) if records else None)
        except Exception as problem:  # noqa: BLE001 - as above
            self._fail(partition, unexpected(str(partition), problem), trace=trace_of(problem))
        else:
            self._count(partition, done)
            if error is not None:
                self._fail(partition, error, (done.end, done.end + 1) if done.error is not None else None)
        return len(records)

    def _renew(self, partition: SourcePartition, expired: ProducerExpiredError) -> None:
        """Close the partition. The next round opens it again, with a new producer, at its committed offset."""
        _logger.warning("producer renewed", partition=str(partition), problem=expired.problem)
        self._streams.close(partition)
        self._add_report(partition, NOTHING_DONE._replace(renewed=1))

    def _count(self, partition: SourcePartition, done: Done) -> None:
        if done.chunks:
            counts = done.first, done.end, done.messages, done.sent, done.chunks, done.seconds
            self._add_report(partition, Report(*counts, native=done.native))

    def _add_report(self, partition: SourcePartition, report: Report) -> None:
        before = self._results.get(partition)
        if before is not None and before.report is not None:
            report = before.report.and_then(report)
        self._results[partition] = TaskResult(partition, report, None)

    def _fail(
        self, partition: SourcePartition, error: CdcError, offsets: tuple[int, int] | None = None, trace: str = ""
    ) -> None:
        """Stop the partition for this batch. offsets: the first and the next one of the messages that failed."""
        if trace:
            _logger.error("partition stopped", problem=error.problem, offsets=offsets, trace=trace)
        before = self._results.get(partition)
        report = None if before is None else before.report
        self._results[partition] = TaskResult(partition, report, error, offsets, trace)
        self._streams.close(partition)
