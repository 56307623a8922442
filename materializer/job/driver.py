"""The driver: it plans a batch, has the workers run it, and deals with what they report, until it is to stop."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Protocol

import structlog

from cdc_program.errors import CdcError, Code
from materializer.job.offset_refresh import Renewal
from materializer.job.placement import Placement
from materializer.job.plan import Share, raw_partitions
from materializer.job.worker_loop import BatchTask

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping, Sequence

    from cdc_program.settings import Settings
    from materializer.job.plan import BatchPlan
    from materializer.job.planner import Planner
    from materializer.job.worker_loop import TaskResult

_logger = structlog.get_logger(__name__)
_BATCH_SECONDS = 1.0  # after which new tables and schemas are looked for
_RETRY_SECONDS = 2.0
_SILENCE_SECONDS = 600.0
_MAY_GO_AWAY = {Code.REGISTRY_UNREACHABLE, Code.KAFKA_UNREACHABLE, Code.CHECKPOINT_LOCATION}


class Workers(Protocol):
    """materializer.job.spark.SparkWorkers."""

    def names(self) -> Sequence[str]:
        """Those that are there now; at least one."""
        ...

    def run(self, task: BatchTask, shares: Mapping[str, Share]) -> list[TaskResult]:
        """Each worker's share, run by it, or by another where that cannot be; any exception ends the job."""
        ...


class Batches:
    """Batch after batch; CdcError where it cannot go on."""

    def __init__(self, settings: Settings, planner: Planner, stop: threading.Event, workers: Workers) -> None:
        self._planner = planner
        self._stop = stop
        self._workers = workers
        self._settings = settings.materializer
        self._placement = Placement()
        self._silence = SilenceAlert()
        self._renewal = Renewal(settings)

    def run(self) -> None:
        """Until it is to stop."""
        while not self._stop.is_set():
            self.process()

    def process(self) -> None:
        """One batch, again while a schema that it needs is not known or the checkpoint location is away."""
        deadline = None
        while (plan := self._plan()) is not None:
            if self._renewal.is_due:
                self._renew(plan)
            errors = self._errors(plan)
            if not errors:
                return
            is_first, deadline = deadline is None, deadline or time.monotonic() + self._settings.schema_wait_seconds
            is_late = time.monotonic() > deadline
            for error in errors:
                if error.code not in _MAY_GO_AWAY and (is_late or error.code is not Code.SCHEMA_UNKNOWN):
                    raise error
            if is_first and all(error.code is Code.SCHEMA_UNKNOWN for error in errors):
                continue  # it has come after the plan was made
            _warn_waiting(errors[0])
            self._stop.wait(min(_RETRY_SECONDS, self._settings.schema_wait_seconds / 4))

    def _plan(self) -> BatchPlan | None:
        """The batch's plan; waits while registry or Kafka are down. None if it is to stop."""
        while not self._stop.is_set():
            try:
                return self._planner.plan()
            except CdcError as error:
                if error.code not in _MAY_GO_AWAY:
                    raise
                _warn_waiting(error)
            self._stop.wait(_RETRY_SECONDS)
        return None

    def _errors(self, plan: BatchPlan) -> list[CdcError]:
        """Run the tasks; what has stopped partitions."""
        started = time.monotonic()
        results = self._run(plan)
        _log_batch(results, time.monotonic() - started)
        self._silence.report(results)
        _say_dead_letters(results)
        return [result.error for result in results if result.error is not None]

    def _run(self, plan: BatchPlan) -> list[TaskResult]:
        partitions = raw_partitions(plan.shapes)
        if not partitions:
            self._stop.wait(_BATCH_SECONDS)
            return []
        names = self._workers.names()
        most = max(1, self._settings.max_offsets_per_trigger // len(names))
        shares = {
            name: Share(tuple(share), most, _BATCH_SECONDS)
            for name, share in self._placement.place(partitions, names).items()
            if share
        }
        return self._workers.run(BatchTask(plan), shares)

    def _renew(self, plan: BatchPlan) -> None:
        """Keep the positions of quiet partitions, now that no task commits any."""
        try:
            self._renewal.run(raw_partitions(plan.shapes))
        except CdcError as error:
            if error.code not in {Code.KAFKA_UNREACHABLE, Code.KAFKA_REFUSED}:
                raise
            _logger.warning("positions not renewed", code=error.code.text, problem=error.problem, fix=error.fix)


class SilenceAlert:
    """Says which publishers are not heard of, now and then for as long as it lasts."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], float] = {}

    def report(self, results: list[TaskResult]) -> None:
        now = time.monotonic()
        silent = {
            (result.partition.topic, host)
            for result in results
            if result.report is not None
            for host in result.report.stalled_publishers
        }
        for topic, host in sorted(silent):
            if now - self._said.get((topic, host), -math.inf) >= _SILENCE_SECONDS:
                self._said[topic, host] = now
                _logger.warning(
                    "publisher silent",
                    code=Code.PUBLISHER_STALLED.text,
                    host=host,
                    topic=topic,
                    problem="Nothing has been heard of it for long: no tombstone is purged meanwhile.",
                    fix="Start it; if its node is gone for good, add the host id to materializer.forgotten_publishers.",
                )


def _warn_waiting(error: CdcError) -> None:
    _logger.warning("waiting", code=error.code.text, problem=error.problem, fix=error.fix)


def _say_dead_letters(results: list[TaskResult]) -> None:
    for partition, report, _ in results:
        if report is not None and report.dead_letters:
            _logger.warning(
                "raw messages put aside",
                code=Code.DEAD_LETTER.text,
                partition=str(partition),
                count=report.dead_letters,
                problem="They cannot be read; changes of their Cassandra partitions say so (source.incomplete).",
                fix="See `cassandra-materializer dead-letters ls`; replay what can be read by a newer materializer.",
            )


def _log_batch(results: list[TaskResult], seconds: float) -> None:
    reports = [result.report for result in results if result.report is not None]
    _logger.debug(
        "batch",
        partitions=len(results),
        messages=sum(report.messages for report in reports),
        changes=sum(report.changes for report in reports),
        read_bytes=sum(report.read for report in reports),
        written_bytes=sum(report.written for report in reports),
        slowest_ms=round(1000 * max((report.seconds for report in reports), default=0.0)),
        ms=round(1000 * seconds),
    )
