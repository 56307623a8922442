"""Starts the job in Spark and stops it."""

from __future__ import annotations

import threading
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from joinery.catalogue import open_catalogue
from joinery.definition_file import load_joins
from joinery.faults import JOIN_FAULTS
from joinery.job.planner import JoinPlanner
from joinery.job.status import JoineryStatus
from joinery.records import Definitions, routes
from stream_runtime.driver.driver import BatchDriver
from stream_runtime.driver.lag_watch import LagWatch, UnreadTopics
from stream_runtime.driver.offset_refresh import OffsetRefresh
from stream_runtime.driver.operations import job_operations
from stream_runtime.driver.stopped import StoppedShares
from stream_runtime.driver.stopping import run_in_spark, stop_signals
from stream_runtime.state.checkpoint_location import object_store

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from cdc_common.errors.codes import CdcError
    from joinery.settings import Settings
    from stream_runtime.query.streaming import StreamingWorkers
    from stream_runtime.records import Share


class JoinOffsetRefresh(OffsetRefresh):
    """Refreshes the offsets of the shares that join. The task of a share that routes does that itself."""

    def refresh(self, shares: Collection[Share]) -> dict[Share, CdcError]:
        return super().refresh([share for share in shares if not routes(share)])


def run_joins(settings: Settings, file: Path) -> None:
    """Join until SIGTERM or SIGINT. CdcError if the job as a whole cannot continue."""
    stop = threading.Event()
    definitions = definitions_of(settings, file)
    own = definitions.settings
    stopped = StoppedShares()
    lags = LagWatch(partial(_unread, definitions), stopped.all)
    status = JoineryStatus(own.group_id, definitions.joins, stopped, lags)
    object_store(own).check()
    with (
        stop_signals(stop),
        closing(open_catalogue(settings.registry)) as catalogue,
        job_operations(own, status) as operations,
        lags,
    ):
        planner = JoinPlanner(definitions, catalogue)
        planner.check_settings()
        make_driver = partial(_make_driver, definitions, planner, stop, status)
        run_in_spark(own, [definitions], make_driver, stop, operations.beat, JOIN_FAULTS.words)


def definitions_of(settings: Settings, file: Path) -> Definitions:
    """Return the definitions in the file. CdcError if it is not valid."""
    return Definitions(load_joins(file), settings.kafka, settings.registry, settings.joinery)


def _unread(definitions: Definitions, reader: str) -> UnreadTopics:
    group = definitions.route_group(reader) if reader else definitions.settings.group_id
    return UnreadTopics(definitions.kafka, group, JOIN_FAULTS)


def _make_driver(
    definitions: Definitions,
    planner: JoinPlanner,
    stop: threading.Event,
    status: JoineryStatus,
    workers: StreamingWorkers,
) -> BatchDriver:
    refresh = JoinOffsetRefresh(definitions.kafka, definitions.settings, JOIN_FAULTS)
    return BatchDriver(definitions.settings, planner, stop, workers, status, JOIN_FAULTS.words, refresh)
