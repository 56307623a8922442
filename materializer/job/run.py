"""Starts the job in Spark and stops it.

The job is a streaming query of Spark. Spark starts the workers, runs the tasks of each micro-batch and retries failed
ones. It keeps no state: positions are the consumer group's (decision 0004).
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.errors.codes import CdcError, Code
from materializer.errors import RAW_FAULTS
from materializer.job.batch_log import BatchLog
from materializer.job.planner import Planner
from materializer.job.snapshot_requests import SnapshotRequests
from materializer.job.status import JobStatus
from stream_runtime.driver.driver import BatchDriver
from stream_runtime.driver.lag_watch import LagWatch, UnreadKafka
from stream_runtime.driver.offset_refresh import OffsetRefresh
from stream_runtime.driver.operations import job_operations
from stream_runtime.driver.stopped import Failure, StoppedShares
from stream_runtime.driver.stopping import run_in_spark, stop_signals
from stream_runtime.records import Share
from stream_runtime.state.checkpoint_location import object_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from materializer.records import RawPartition
    from materializer.settings import Settings
    from materializer.worker.batch_plan import BatchPlan
    from stream_runtime.query.streaming import StreamingWorkers
    from stream_runtime.worker.task import TaskResult

_RETRY_SECONDS = 0.5


def run_job(settings: Settings) -> None:
    """Materialize until SIGTERM or SIGINT. CdcError if the job as a whole cannot continue."""
    stop = threading.Event()
    own = settings.materializer
    stopped = StoppedShares()
    lags = LagWatch(lambda _reader: UnreadKafka(settings.kafka, own.group_id, RAW_FAULTS), stopped.all)
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
        log = BatchLog()

        def after_batch(results: Sequence[TaskResult], plan: BatchPlan) -> None:
            log.log_batch(results)
            requests.send_new(results, plan, planner.requests)

        def make_driver(workers: StreamingWorkers) -> BatchDriver:
            refresh = OffsetRefresh(settings.kafka, own, RAW_FAULTS)
            driver = BatchDriver(own, planner, stop, workers, status, RAW_FAULTS.words, refresh, after_batch)
            driver.stop_shares({Share.of(raw_partition): Failure(error) for raw_partition, error in failures.items()})
            return driver

        with lags:
            run_in_spark(own, (settings.kafka, own), make_driver, stop, operations.beat, RAW_FAULTS.words)


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
