"""Starts the job in Spark and stops it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from stream_runtime.driver.driver import BatchDriver
from stream_runtime.driver.lag_watch import LagWatch
from stream_runtime.driver.operations import job_operations
from stream_runtime.driver.stopped import StoppedShares
from stream_runtime.driver.stopping import run_in_spark, stop_signals
from warehouse.faults import WAREHOUSE_FAULTS, command_refused
from warehouse.job.plan import Job
from warehouse.job.planner import TopicPlanner
from warehouse.job.status import Offsets, WarehouseStatus, unread_of
from warehouse.targets.open import open_loader

if TYPE_CHECKING:
    from stream_runtime.query.streaming import StreamingWorkers
    from warehouse.settings import Settings


def run_warehouse(settings: Settings, *, writes: bool = False) -> None:
    """Load, or write objects, until SIGTERM or SIGINT. CdcError if the job as a whole cannot continue."""
    stop, own = threading.Event(), settings.warehouse
    job = job_of(settings, writes=writes)
    stopped = StoppedShares()
    offsets: Offsets = {}
    lags = LagWatch(lambda _reader: unread_of(job, offsets), stopped.all)
    status = WarehouseStatus(own.group_id, stopped, lags, offsets)
    with stop_signals(stop), job_operations(own, status) as operations, lags:
        planner = TopicPlanner(job)
        planner.check_settings()

        def make_driver(workers: StreamingWorkers) -> BatchDriver:
            return BatchDriver(own, planner, stop, workers, status, WAREHOUSE_FAULTS.words)

        run_in_spark(own, [job], make_driver, stop, operations.beat, WAREHOUSE_FAULTS.words)


def job_of(settings: Settings, *, writes: bool = False) -> Job:
    """The settings as the workers get them. writes: whether the job writes objects. CdcError for a target that copies
    none.
    """
    own = settings.warehouse
    copies = bool(open_loader(own).connection.dialect.objects)
    if writes and not copies:
        raise command_refused("write", own.target.partition(":")[0])
    return Job(settings.kafka, settings.registry, own, "write" if writes else "copy" if copies else "load")
