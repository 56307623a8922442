"""Starts the job in Spark and stops it."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

from archive.faults import ARCHIVE_FAULTS
from archive.files import open_store
from archive.job.plan import Job
from archive.job.planner import TopicPlanner
from archive.job.status import ArchiveStatus
from stream_runtime.driver.driver import BatchDriver
from stream_runtime.driver.lag_watch import LagWatch, UnreadTopics
from stream_runtime.driver.operations import job_operations
from stream_runtime.driver.stopped import StoppedShares
from stream_runtime.driver.stopping import run_in_spark, stop_signals

if TYPE_CHECKING:
    from archive.registrar.thread import RegistrarThread
    from archive.settings import Settings
    from stream_runtime.query.streaming import StreamingWorkers


def run_archive(settings: Settings) -> None:
    """Archive until SIGTERM or SIGINT. CdcError if the job as a whole cannot continue."""
    stop, own = threading.Event(), settings.archive
    job = job_of(settings)
    stopped = StoppedShares()
    lags = LagWatch(lambda _reader: UnreadTopics(job.kafka, own.group_id, ARCHIVE_FAULTS), stopped.all)
    status = ArchiveStatus(own.group_id, stopped, lags)
    with stop_signals(stop), job_operations(own, status) as operations, lags, ExitStack() as registrar:
        planner = TopicPlanner(job)
        planner.check_settings()
        if own.has_catalog:
            status.registrar = registrar.enter_context(_registrar(settings))

        def make_driver(workers: StreamingWorkers) -> BatchDriver:
            return BatchDriver(own, planner, stop, workers, status, ARCHIVE_FAULTS.words)

        run_in_spark(own, [job], make_driver, stop, operations.beat, ARCHIVE_FAULTS.words)


def _registrar(settings: Settings) -> RegistrarThread:
    from archive.registrar.thread import RegistrarThread  # noqa: PLC0415 - without a catalog PyIceberg is not needed

    return RegistrarThread(settings.kafka, settings.archive)


def job_of(settings: Settings) -> Job:
    """The settings as the workers get them."""
    return Job(settings.kafka, settings.registry, settings.archive)


def check_archive(settings: Settings) -> list[str]:
    """Check the settings as the job does at its start, without Spark, and the catalogs. CdcError. Return the topics."""
    planner = TopicPlanner(job_of(settings))
    planner.check_settings()
    if settings.archive.has_catalog:
        from archive.registrar.catalogs import check_catalogs  # noqa: PLC0415 - without one PyIceberg is not needed

        check_catalogs(settings.archive, open_store(settings.archive.location))
    return planner.find_topics()
