"""Starts the job in Spark and stops it."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING

from stream_runtime.driver.driver import BatchDriver
from stream_runtime.driver.lag_watch import LagWatch, UnreadTopics
from stream_runtime.driver.operations import job_operations
from stream_runtime.driver.stopped import StoppedShares
from stream_runtime.driver.stopping import run_in_spark, stop_signals
from stream_runtime.kafka import Topics
from transformer.definition_file import load_transformers
from transformer.faults import STREAM_FAULTS
from transformer.job.planner import StreamPlanner
from transformer.job.status import TransformStatus
from transformer.records import Definitions
from transformer.routing.catalogue import open_catalogue

if TYPE_CHECKING:
    from pathlib import Path

    from stream_runtime.query.streaming import StreamingWorkers
    from transformer.settings import Settings


def run_transformers(settings: Settings, file: Path) -> None:
    """Transform until SIGTERM or SIGINT. CdcError if the job as a whole cannot continue."""
    stop = threading.Event()
    definitions = definitions_of(settings, file)
    own = definitions.settings
    stopped = StoppedShares()
    topics = Topics(definitions.kafka)

    def connect(transformer: str) -> UnreadTopics:
        return UnreadTopics(definitions.kafka, definitions.group_of(transformer), topics=topics)

    lags = LagWatch(connect, stopped.all)
    status = TransformStatus(own.group_id, stopped, lags)
    with (
        stop_signals(stop),
        closing(open_catalogue(settings.registry)) as catalogue,
        job_operations(own, status) as operations,
    ):
        planner = StreamPlanner(definitions, catalogue)
        planner.check_settings()
        planner.check_any()

        def make_driver(workers: StreamingWorkers) -> BatchDriver:
            return BatchDriver(own, planner, stop, workers, status, STREAM_FAULTS.words)

        with lags:
            run_in_spark(own, [definitions], make_driver, stop, operations.beat, STREAM_FAULTS.words)


def definitions_of(settings: Settings, file: Path) -> Definitions:
    """Return the definitions in the file. CdcError if it is not valid."""
    return Definitions(load_transformers(file), settings.kafka, settings.registry, settings.transformer)


def check_transformers(settings: Settings, file: Path) -> list[str]:
    """Check the transformers as the job does at its start, without Spark. CdcError. Returns the names of those whose
    source is not there, which could not be checked.
    """
    definitions = definitions_of(settings, file)
    with closing(open_catalogue(settings.registry)) as catalogue:
        planner = StreamPlanner(definitions, catalogue)
        planner.check_steps()
        return planner.without_source
