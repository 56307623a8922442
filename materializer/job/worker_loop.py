"""A Spark task: a worker's share of the raw partitions, read and folded round by round for the time of a batch.

A Python worker lives as long as its executor, which has one core: what it has read and not folded yet is kept here for
the next batch, which gives it the same partitions. Whatever is lost with it is read again from the group's positions.
"""

from __future__ import annotations

import os
import time
import zipimport
from typing import TYPE_CHECKING, NamedTuple

from cdc_program.errors import CdcError
from materializer.exactly_once.partition_task import Report
from materializer.exactly_once.position import check_offset, check_shape
from materializer.job.backlog import Waiting
from materializer.job.open_partitions import OpenPartitions
from materializer.kafka import RawReader, ReadBudget, Topics
from materializer.records import RawPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cdc_program.settings import KafkaSettings, MaterializerSettings
    from materializer.job.plan import BatchPlan, Share, TopicPlan


def _keep_caches(_importer: zipimport.zipimporter) -> None:
    """PySpark calls importlib.invalidate_caches() for each task, which makes Python 3.11 read the directories of the
    zip files on its path again: 200 ms of CPU a task (measured).
    """


zipimport.zipimporter.invalidate_caches = _keep_caches  # type: ignore[method-assign,assignment]

_QUIET_SECONDS = 0.25  # of a round that what comes may have to wait for quiet partitions
_BUSY_SECONDS = 1.0  # of a round that the driver, and quiet partitions, may have to wait for busy ones
_LEAST_WAIT = 0.01  # for messages
_READ_CHUNKS = 4  # bytes of raw messages that are read ahead, as a multiple of those of a chunk
_MOST_WAITING = 50_000  # heartbeats, of about 500 bytes as Python keeps them


class TaskResult(NamedTuple):
    """What became of a raw partition in a batch: exactly one of the two is there."""

    partition: RawPartition
    report: Report | None
    error: CdcError | None


class BatchTask:
    """The function that Spark runs in the workers."""

    def __init__(self, plan: BatchPlan) -> None:
        self._plan = plan

    def __call__(self, shares: Iterable[Share]) -> Iterator[TaskResult]:
        """The results of the partitions that had something to do; any exception but CdcError is Spark's to see."""
        os.umask(0o077)
        for share in shares:
            yield from _rounds(self._plan).run(self._plan, share)


class Rounds:
    """A worker's reader, and what it has read."""

    def __init__(self, kafka: KafkaSettings, settings: MaterializerSettings) -> None:
        self._pause = max(settings.trigger_interval_ms / 1000, _LEAST_WAIT)
        self._reader = RawReader(kafka, settings.group_id, int(500 * self._pause))
        self._topics = Topics(kafka)
        self._open = OpenPartitions()
        self._waiting = Waiting(heartbeat_wait(settings), _MOST_WAITING)
        self._plans: dict[str, TopicPlan] = {}
        self._results: dict[RawPartition, TaskResult] = {}

    def run(self, plan: BatchPlan, share: Share) -> list[TaskResult]:
        """Rounds, at least one, until the time is over or something cannot go on."""
        end = time.monotonic() + share.seconds
        self._results = {}
        try:
            self._follow(plan, share)
        except CdcError as error:
            return [TaskResult(share.partitions[0], None, error)]
        while True:
            self._round(plan, share)
            if time.monotonic() >= end or any(result.error for result in self._results.values()):
                return list(self._results.values())

    def _follow(self, plan: BatchPlan, share: Share) -> None:
        """Take over what is new, leave what is gone, and note which tables have changed."""
        wanted = set(share.partitions)
        for partition in self._waiting.partitions - wanted:
            self._forget(partition)
            self._open.close(partition)
        new = wanted - self._waiting.partitions
        positions = self._reader.positions(new)
        self._reader.add({each: 0 if position is None else position.offset for each, position in positions.items()})
        for partition in new:
            self._waiting.add(partition, time.monotonic())
        for topic, found in plan.topics.items():
            if found != self._plans.get(topic):
                self._waiting.urge(topic)
        self._plans = plan.topics

    def _round(self, plan: BatchPlan, share: Share) -> None:
        """Read for a while; then run all partitions that have something to tell, and some that have not."""
        settings = plan.materializer
        if not self._read(ReadBudget(share.messages, _READ_CHUNKS * settings.chunk_max_bytes)):
            return
        started = time.monotonic()
        busy = self._waiting.busy()
        if not self._is_unchanged(plan, busy):
            return
        self._run_for(_BUSY_SECONDS, busy, plan)
        quiet_seconds = max(_QUIET_SECONDS, time.monotonic() - started)
        self._run_for(quiet_seconds, self._waiting.quiet(time.monotonic()), plan)

    def _read(self, bounds: ReadBudget) -> bool:
        """Take what has come; false where that shows that a partition cannot go on."""
        messages, size = self._waiting.backlog
        left = ReadBudget(bounds.messages - messages, bounds.bytes - size)
        try:
            records, lost = self._reader.read(left, 0 if messages else self._pause)
        except CdcError as error:
            self._fail(min(self._waiting.partitions), error)
            return False
        for partition, found in records.items():
            self._waiting.put(partition, found)
        for partition in lost:
            self._explain_loss(partition)
        return not lost

    def _explain_loss(self, partition: RawPartition) -> None:
        try:
            position = self._reader.positions([partition])[partition]
            check_offset(partition, 0 if position is None else position.offset, self._reader.bounds(partition))
        except CdcError as error:
            self._fail(partition, error)
        else:
            self._forget(partition)

    def _is_unchanged(self, plan: BatchPlan, partitions: list[RawPartition]) -> bool:
        """Are the topics what they were, after these messages have come? Else their keys may have moved."""
        topics = {partition.topic for partition in partitions}
        try:
            for topic, shape in self._topics.shapes(topics).items():
                check_shape(topic, plan.shapes[topic], shape)
        except CdcError as error:
            self._fail(partitions[0], error)
            return False
        return True

    def _run_for(self, seconds: float, partitions: list[RawPartition], plan: BatchPlan) -> None:
        """Run the partitions, but none any more when the time is over."""
        end = time.monotonic() + seconds
        for partition in partitions:
            self._run(partition, plan)
            if time.monotonic() >= end:
                return

    def _run(self, partition: RawPartition, plan: BatchPlan) -> None:
        records = self._waiting.records(partition, plan.materializer.chunk_max_messages)
        try:
            report = self._open.process(plan, partition, records)
        except CdcError as error:
            self._fail(partition, error)
            return
        except BaseException:
            self._forget(partition)
            raise
        self._waiting.done(partition, records, report, time.monotonic())
        before = self._results.get(partition)
        if before is not None and before.report is not None:
            report = before.report.and_then(report)
        self._results[partition] = TaskResult(partition, report, None)

    def _fail(self, partition: RawPartition, error: CdcError) -> None:
        self._results[partition] = TaskResult(partition, None, error)
        self._forget(partition)

    def _forget(self, partition: RawPartition) -> None:
        """What was read of it; the next batch reads it from its position again."""
        self._waiting.remove(partition)
        self._reader.remove([partition])


def _rounds(plan: BatchPlan) -> Rounds:
    """One a process and group."""
    key = plan.kafka, plan.materializer.group_id
    if key not in _of_group:
        _of_group[key] = Rounds(plan.kafka, plan.materializer)
    return _of_group[key]


_of_group: dict[tuple[KafkaSettings, str], Rounds] = {}


def heartbeat_wait(settings: MaterializerSettings) -> float:
    """How long heartbeats may wait (s), so that nothing that goes by their times takes it for silence or a leap."""
    return min(
        settings.idle_commit_seconds, settings.stalled_publisher_seconds / 4, settings.max_clock_jump_hours * 3600 / 4
    )
