"""A Spark task: a worker polls its raw partitions and folds them for the time of a batch.

A Python worker lives as long as its executor, which has one core. Its PollLoop keeps unfolded messages for the next
batch, which has the same raw partitions. If the worker is lost, they are read again from the group's positions.
"""

from __future__ import annotations

import os
import time
import zipimport
from typing import TYPE_CHECKING, NamedTuple

from cdc_program.errors import CdcError
from materializer.exactly_once.partition_task import Report
from materializer.exactly_once.position import check_offset, check_shape
from materializer.job.backlog import RawBacklog
from materializer.job.open_partitions import OpenPartitions
from materializer.kafka import RawReader, ReadBudget, Topics
from materializer.records import RawPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cdc_program.settings import KafkaSettings, MaterializerSettings
    from materializer.job.plan import Assignment, BatchPlan, TopicPlan


def _keep_caches(_importer: zipimport.zipimporter) -> None:
    """PySpark calls importlib.invalidate_caches() for each task, which makes Python 3.11 read the directories of the
    zip files on its path again: 200 ms of CPU a task (measured).
    """


zipimport.zipimporter.invalidate_caches = _keep_caches  # type: ignore[method-assign,assignment]

_IDLE_SECONDS = 0.25  # of a poll for folding idle raw partitions, while new messages wait
_ACTIVE_SECONDS = 1.0  # of a poll for folding active raw partitions, while the driver and idle ones wait
_MIN_POLL_SECONDS = 0.01
_READ_CHUNKS = 4  # bytes of raw messages that are read ahead, as a multiple of those of a chunk
_MAX_HEARTBEATS = 50_000  # that wait, each of about 500 bytes in memory


class TaskResult(NamedTuple):
    """The result of a raw partition in a batch: either a report or an error."""

    raw_partition: RawPartition
    report: Report | None
    error: CdcError | None


class BatchTask:
    """The function that Spark runs in the workers."""

    def __init__(self, plan: BatchPlan) -> None:
        self._plan = plan

    def __call__(self, assignments: Iterable[Assignment]) -> Iterator[TaskResult]:
        """The results of the raw partitions that were folded or failed. Spark handles any exception but CdcError."""
        os.umask(0o077)
        for assignment in assignments:
            yield from _poll_loop(self._plan).run_batch(self._plan, assignment)


class PollLoop:
    """A worker's Kafka reader, and the messages that it has read but not folded."""

    def __init__(self, kafka: KafkaSettings, settings: MaterializerSettings) -> None:
        self._poll_seconds = max(settings.trigger_interval_ms / 1000, _MIN_POLL_SECONDS)
        self._reader = RawReader(kafka, settings.group_id, int(500 * self._poll_seconds))
        self._topics = Topics(kafka)
        self._open_partitions = OpenPartitions()
        self._backlog = RawBacklog(max_heartbeat_wait(settings), _MAX_HEARTBEATS)
        self._plans: dict[str, TopicPlan] = {}
        self._results: dict[RawPartition, TaskResult] = {}

    def run_batch(self, plan: BatchPlan, assignment: Assignment) -> list[TaskResult]:
        """Poll at least once, until the time is over or a raw partition fails."""
        end = time.monotonic() + assignment.seconds
        self._results = {}
        try:
            self._apply_assignment(plan, assignment)
        except CdcError as error:
            return [TaskResult(assignment.raw_partitions[0], None, error)]
        while True:
            self._poll_and_fold(plan, assignment)
            if time.monotonic() >= end or any(result.error for result in self._results.values()):
                return list(self._results.values())

    def _apply_assignment(self, plan: BatchPlan, assignment: Assignment) -> None:
        """Release and add raw partitions, and mark the topics of changed tables ready."""
        assigned = set(assignment.raw_partitions)
        for raw_partition in self._backlog.raw_partitions - assigned:
            self._forget(raw_partition)
            self._open_partitions.close(raw_partition)
        added = assigned - self._backlog.raw_partitions
        positions = self._reader.positions(added)
        self._reader.add({each: 0 if position is None else position.offset for each, position in positions.items()})
        for raw_partition in added:
            self._backlog.add(raw_partition, time.monotonic())
        for topic, topic_plan in plan.topics.items():
            if topic_plan != self._plans.get(topic):
                self._backlog.mark_ready(topic)
        self._plans = plan.topics

    def _poll_and_fold(self, plan: BatchPlan, assignment: Assignment) -> None:
        """Read for a while. Then fold all active raw partitions, and the idle ones that are ready."""
        settings = plan.materializer
        if not self._poll(ReadBudget(assignment.max_messages, _READ_CHUNKS * settings.chunk_max_bytes)):
            return
        started = time.monotonic()
        active = self._backlog.active()
        if not self._check_topics(plan, active):
            return
        self._fold_all(_ACTIVE_SECONDS, active, plan)
        idle_seconds = max(_IDLE_SECONDS, time.monotonic() - started)
        self._fold_all(idle_seconds, self._backlog.ready_idle(time.monotonic()), plan)

    def _poll(self, budget: ReadBudget) -> bool:
        """Read new messages. False if a raw partition has lost messages."""
        messages, size = self._backlog.active_size
        left = ReadBudget(budget.messages - messages, budget.bytes - size)
        try:
            records, lost = self._reader.read(left, 0 if messages else self._poll_seconds)
        except CdcError as error:
            self._fail(min(self._backlog.raw_partitions), error)
            return False
        for raw_partition, found in records.items():
            self._backlog.append(raw_partition, found)
        for raw_partition in lost:
            self._explain_loss(raw_partition)
        return not lost

    def _explain_loss(self, raw_partition: RawPartition) -> None:
        try:
            position = self._reader.positions([raw_partition])[raw_partition]
            check_offset(raw_partition, 0 if position is None else position.offset, self._reader.bounds(raw_partition))
        except CdcError as error:
            self._fail(raw_partition, error)
        else:
            self._forget(raw_partition)

    def _check_topics(self, plan: BatchPlan, raw_partitions: list[RawPartition]) -> bool:
        """Whether the topics have the planned shapes now that their messages are read. If not, keys may have moved."""
        topics = {raw_partition.topic for raw_partition in raw_partitions}
        try:
            for topic, shape in self._topics.shapes(topics).items():
                check_shape(topic, plan.shapes[topic], shape)
        except CdcError as error:
            self._fail(raw_partitions[0], error)
            return False
        return True

    def _fold_all(self, seconds: float, raw_partitions: list[RawPartition], plan: BatchPlan) -> None:
        """Fold one raw partition after another, until the time is over."""
        end = time.monotonic() + seconds
        for raw_partition in raw_partitions:
            self._fold(raw_partition, plan)
            if time.monotonic() >= end:
                return

    def _fold(self, raw_partition: RawPartition, plan: BatchPlan) -> None:
        records = self._backlog.first_records(raw_partition, plan.materializer.chunk_max_messages)
        try:
            report = self._open_partitions.process(plan, raw_partition, records)
        except CdcError as error:
            self._fail(raw_partition, error)
            return
        except BaseException:
            self._forget(raw_partition)
            raise
        self._backlog.mark_folded(raw_partition, records, report, time.monotonic())
        before = self._results.get(raw_partition)
        if before is not None and before.report is not None:
            report = before.report.and_then(report)
        self._results[raw_partition] = TaskResult(raw_partition, report, None)

    def _fail(self, raw_partition: RawPartition, error: CdcError) -> None:
        self._results[raw_partition] = TaskResult(raw_partition, None, error)
        self._forget(raw_partition)

    def _forget(self, raw_partition: RawPartition) -> None:
        """Drop its backlog. A later batch reads it again from its committed position."""
        self._backlog.remove(raw_partition)
        self._reader.remove([raw_partition])


def _poll_loop(plan: BatchPlan) -> PollLoop:
    """One for each process and group."""
    key = plan.kafka, plan.materializer.group_id
    if key not in _poll_loops:
        _poll_loops[key] = PollLoop(plan.kafka, plan.materializer)
    return _poll_loops[key]


_poll_loops: dict[tuple[KafkaSettings, str], PollLoop] = {}


def max_heartbeat_wait(settings: MaterializerSettings) -> float:
    """How many seconds heartbeats may wait without looking like a stalled publisher."""
    return min(settings.idle_commit_seconds, settings.stalled_publisher_seconds / 4)
