"""The raw partitions that a process keeps open, so that their next chunk needs no new producer and no restore."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

import structlog

from materializer.worker.wiring import open_task
from stream_runtime.errors import trace_of
from stream_runtime.exactly_once.commits import NotOwnerError
from stream_runtime.kafka import ProducerExpiredError
from stream_runtime.state.checkpoint_location import object_store
from stream_runtime.state.snapshots import at_once

if TYPE_CHECKING:
    from collections.abc import Iterable

    from materializer.records import RawPartition, RawRecord
    from materializer.worker.batch_plan import BatchPlan
    from stream_runtime.exactly_once.partition_task import PartitionTask
    from stream_runtime.exactly_once.report import Report
    from stream_runtime.state.object_store import Traffic
    from stream_runtime.state.snapshots import Run

_logger = structlog.get_logger(__name__)
_SOON_SECONDS = 60.0


class OpenPartitions:
    """Keeps the tasks of as many raw partitions as the settings allow; closes the least recently used one first."""

    def __init__(self, run: Run = at_once) -> None:
        """run: how snapshots are uploaded."""
        self._run = run
        self._tasks: OrderedDict[RawPartition, PartitionTask] = OrderedDict()
        self._counted = (0, 0, 0)
        self._closed_at: dict[RawPartition, float] = {}  # when those were closed that were one too many
        self._reopened = 0

    def process(
        self, plan: BatchPlan, raw_partition: RawPartition, records: Iterable[RawRecord], end: float = math.inf
    ) -> Report:
        """Fold the records as PartitionTask.process. After any exception the raw partition is closed.

        A task whose producer is not the newest one, or has expired, is opened again at once. It begins with a new
        producer and the committed position, as any task does.
        The report has all traffic with the checkpoint location since the one before, of other threads too.
        """
        processor = plan.processor(raw_partition.topic)
        task = self._tasks.pop(raw_partition, None)
        renewed = 0
        try:
            if task is not None:
                try:
                    report = task.process(records, processor, end)
                except (NotOwnerError, ProducerExpiredError) as error:
                    if isinstance(error, ProducerExpiredError):
                        renewed = 1
                        _logger.warning("producer renewed", raw_partition=str(raw_partition), problem=error.problem)
                    _close(task)
                    task = None
            if task is None:
                self._count_reopened(raw_partition, plan.materializer.max_open_raw_partitions)
                task = open_task(plan, raw_partition, self._run)
                report = task.process(records, processor, end)
        except BaseException:
            if task is not None:
                _close(task)
            raise
        self._tasks[raw_partition] = task
        while len(self._tasks) > plan.materializer.max_open_raw_partitions:
            closed, oldest = self._tasks.popitem(last=False)
            self._closed_at[closed] = time.monotonic()
            _close(oldest)
        report = self._with_traffic(report, object_store(plan.materializer).traffic)._replace(renewed=renewed)
        return report._replace(state=report.state._replace(bytes=task.state_bytes())) if report.chunks else report

    def _count_reopened(self, raw_partition: RawPartition, most: int) -> None:
        """Warn once if raw partitions are closed that are needed again soon: each opening takes 20 ms and more."""
        closed_at = self._closed_at.pop(raw_partition, -math.inf)
        if time.monotonic() - closed_at < _SOON_SECONDS:
            self._reopened += 1
            if self._reopened == most:
                _logger.warning(
                    "more raw partitions are active than may be open",
                    max_open_raw_partitions=most,
                    fix="Raise materializer.max_open_raw_partitions, or add workers.",
                )

    def _with_traffic(self, report: Report, traffic: Traffic) -> Report:
        (read, written, restores), self._counted = self._counted, (traffic.read, traffic.written, traffic.restores)
        state = report.state._replace(
            read=self._counted[0] - read,
            written=self._counted[1] - written,
            restores=self._counted[2] - restores,
        )
        return report._replace(state=state)

    def close(self, raw_partition: RawPartition) -> None:
        """Close a raw partition that this process does not work on any more."""
        task = self._tasks.pop(raw_partition, None)
        if task is not None:
            _close(task)

    def close_all(self) -> None:
        while self._tasks:
            _close(self._tasks.popitem()[1])


def _close(task: PartitionTask) -> None:
    """A failure to close concerns this raw partition only: next time it is opened from its committed state."""
    try:
        task.close()
    except Exception as error:  # noqa: BLE001 - the raw partitions that are open must stay so
        _logger.warning("raw partition not closed cleanly", trace=trace_of(error))
