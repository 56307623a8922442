"""Runs a job whose shares have states."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.driver.driver import BatchDriver
from stream_runtime.driver.lag_watch import LagWatch, UnreadKafka
from stream_runtime.driver.offset_refresh import OffsetRefresh
from stream_runtime.driver.operations import job_operations
from stream_runtime.driver.stopped import StoppedShares
from stream_runtime.driver.stopping import run_in_spark, stop_signals
from stream_runtime.driver.stream_status import StreamStatus
from stream_runtime.kafka import Topics
from stream_runtime.records import Share, SourcePartition
from stream_runtime.state.checkpoint_location import object_store
from stream_runtime.worker.stateful_loop import StatefulLoopTask, StatefulPlan

if TYPE_CHECKING:
    from collections.abc import Collection

    from stream_runtime.query.streaming import StreamingWorkers
    from stream_runtime.records import TopicShape
    from stream_runtime.worker.stateful_loop import StatefulJob


class TopicPlanner:
    """Plans each batch: the job's topics, as they are now (driver.Plans).

    errors: of topics that are not there, or not those of before. A topic is not planned again before `retry`.
    """

    def __init__(self, job: StatefulJob) -> None:
        self.errors: dict[str, CdcError] = {}
        self._job = job
        self._topics = Topics(job.kafka)
        self._shapes: dict[str, TopicShape] = {}

    @property
    def pending(self) -> set[str]:
        """No topic's plan takes time."""
        return set()

    def plan_batch(self) -> StatefulPlan:
        """CdcError for what concerns the whole job. KAFKA_UNREACHABLE is temporary."""
        for topic, shape in self._topics.each_shape(self._job.topics).items():
            if isinstance(shape, CdcError):
                if shape.code is not Code.KAFKA_UNREACHABLE:  # a broker that has just started may not know it yet
                    self.errors.setdefault(topic, shape)
            elif self._shapes.setdefault(topic, shape) != shape:
                self.errors.setdefault(topic, self._job.faults.topic_changed(topic, self._shapes[topic], shape))
        return StatefulPlan(self._job, dict(self._shapes))

    def first_share(self, stream: str) -> Share:
        return Share.of(SourcePartition(stream, 0))

    def make_task(self, plan: StatefulPlan) -> StatefulLoopTask:
        return StatefulLoopTask(plan)

    def retry(self, streams: Collection[str]) -> None:
        """The next batch plans these topics again, with the shapes that they have by then."""
        for topic in streams:
            self.errors.pop(topic, None)
            self._shapes.pop(topic, None)

    def check_settings(self) -> None:
        """Raise CdcError if the brokers or the checkpoint location do not allow the settings."""
        self._topics.check_transaction_timeout(self._job.settings.transaction_timeout_seconds)
        object_store(self._job.settings).check()


def run_stateful_job(job: StatefulJob) -> None:
    """Run until SIGTERM or SIGINT. CdcError if the job as a whole cannot continue."""
    stop, settings, words = threading.Event(), job.settings, job.faults.words
    stopped = StoppedShares()
    lags = LagWatch(partial(_unread, job), stopped.all)
    status = StreamStatus(settings.group_id, words, stopped, lags)
    with stop_signals(stop), job_operations(settings, status) as operations, lags:
        planner = TopicPlanner(job)
        planner.check_settings()
        make_driver = partial(_make_driver, job, planner, stop, status)
        run_in_spark(settings, (job,), make_driver, stop, operations.beat, words)


def _unread(job: StatefulJob, _reader: str) -> UnreadKafka:
    return UnreadKafka(job.kafka, job.settings.group_id, job.faults)


def _make_driver(
    job: StatefulJob, planner: TopicPlanner, stop: threading.Event, status: StreamStatus, workers: StreamingWorkers
) -> BatchDriver:
    refresh = OffsetRefresh(job.kafka, job.settings, job.faults)
    return BatchDriver(job.settings, planner, stop, workers, status, job.faults.words, refresh)
