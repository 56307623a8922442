"""Starts the job in Spark and stops it.

The job is a streaming query of Spark. Spark starts the workers, runs the tasks of each micro-batch and retries failed
ones. It keeps no state: positions are the consumer group's (decision 0004).
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from cdc_common.clients.registry import RegistryClient
from cdc_common.errors.codes import CdcError, Code
from materializer.job.driver import BatchDriver
from materializer.job.lag_watch import LagWatch, UnreadKafka
from materializer.job.offset_refresh import OffsetRefresh
from materializer.job.operations import job_operations
from materializer.job.planner import Planner
from materializer.job.snapshot_requests import SnapshotRequests
from materializer.job.status import JobStatus
from materializer.job.stopped import Failure, StoppedPartitions
from materializer.job.stopping import run_in_spark, stop_signals
from materializer.job.wiring import object_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from materializer.job.plan import BatchPlan
    from materializer.job.streaming import StreamingWorkers
    from materializer.job.worker_loop import TaskResult
    from materializer.records import RawPartition
    from materializer.settings import Settings

_RETRY_SECONDS = 0.5


def run_job(settings: Settings) -> None:
    """Materialize until SIGTERM or SIGINT. CdcError if the job as a whole cannot continue."""
    stop = threading.Event()
    own = settings.materializer
    stopped = StoppedPartitions()
    lags = LagWatch(lambda: UnreadKafka(settings.kafka, own.group_id), stopped.all)
    status = JobStatus(own.group_id, stopped, lags)
    with (
        stop_signals(stop),
        RegistryClient(settings.registry) as registry,
        job_operations(own, status, status.problem) as operations,
    ):
        planner = Planner(settings, registry)
        planner.check_settings()
        object_store(own).check()
        failures = _check_positions(planner, settings)  # so that errors of the whole job show before Spark starts
        planner.check_registry()
        requests = SnapshotRequests(settings.kafka)

        def send_requests(results: Sequence[TaskResult], plan: BatchPlan) -> None:
            requests.follow(results, plan, planner.requests)

        def make_driver(workers: StreamingWorkers) -> BatchDriver:
            refresh = OffsetRefresh(settings.kafka, own)
            driver = BatchDriver(own, planner, stop, workers, status, refresh, send_requests)
            driver.stop_raw_partitions({each: Failure(error) for each, error in failures.items()})
            return driver

        with lags:
            run_in_spark(own, (settings.kafka, own), make_driver, stop, operations.beat)


def _check_positions(planner: Planner, settings: Settings) -> dict[RawPartition, CdcError]:
    """Planner.check_positions, retried for a while: the Kafka cluster may have just started."""
    deadline = time.monotonic() + settings.kafka.connect_timeout_seconds
    while True:
        try:
            return planner.check_positions()
        except CdcError as error:
            if error.code is not Code.KAFKA_UNREACHABLE or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_SECONDS)
