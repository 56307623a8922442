"""The driver: plans a batch, has the workers run it, and handles the errors that they report, until it is stopped."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

import structlog

from cdc_program.errors import CdcError, Code
from materializer.job.batch_log import BatchLog
from materializer.job.offset_refresh import OffsetRefresh
from materializer.job.placement import Placement
from materializer.job.plan import Assignment, list_raw_partitions
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
_TEMPORARY = {Code.REGISTRY_UNREACHABLE, Code.KAFKA_UNREACHABLE, Code.CHECKPOINT_LOCATION}


class Workers(Protocol):
    """materializer.job.spark_workers.SparkWorkers."""

    def list_workers(self) -> Sequence[str]:
        """The names of the workers that are there now; at least one."""
        ...

    def run_task(self, task: BatchTask, assignments: Mapping[str, Assignment]) -> list[TaskResult]:
        """Have each worker run its assignment, or another worker if it cannot. Any exception ends the job."""
        ...


class BatchDriver:
    """Runs batch after batch. CdcError if it cannot continue."""

    def __init__(self, settings: Settings, planner: Planner, stop: threading.Event, workers: Workers) -> None:
        self._planner = planner
        self._stop = stop
        self._workers = workers
        self._settings = settings.materializer
        self._placement = Placement()
        self._log = BatchLog()
        self._offset_refresh = OffsetRefresh(settings)

    def run_until_stopped(self) -> None:
        while not self._stop.is_set():
            self.run_batch()

    def run_batch(self) -> None:
        """Run one batch, and retry it while it needs an unknown schema or the checkpoint location is unreachable."""
        deadline = None
        while (plan := self._make_plan()) is not None:
            if self._offset_refresh.is_due:
                self._refresh_offsets(plan)
            errors = self._attempt_batch(plan)
            if not errors:
                return
            is_first, deadline = deadline is None, deadline or time.monotonic() + self._settings.schema_wait_seconds
            is_late = time.monotonic() > deadline
            for error in errors:
                if error.code not in _TEMPORARY and (is_late or error.code is not Code.SCHEMA_UNKNOWN):
                    raise error
            if is_first and all(error.code is Code.SCHEMA_UNKNOWN for error in errors):
                continue  # the schema may have arrived after the plan was made
            _log_waiting(errors[0])
            self._stop.wait(min(_RETRY_SECONDS, self._settings.schema_wait_seconds / 4))

    def _make_plan(self) -> BatchPlan | None:
        """Plan the batch; wait while the registry or Kafka is unreachable. None if the job is stopped."""
        while not self._stop.is_set():
            try:
                return self._planner.plan_batch()
            except CdcError as error:
                if error.code not in _TEMPORARY:
                    raise
                _log_waiting(error)
            self._stop.wait(_RETRY_SECONDS)
        return None

    def _attempt_batch(self, plan: BatchPlan) -> list[CdcError]:
        """Run the tasks. The errors that have stopped raw partitions."""
        started = time.monotonic()
        results = self._run_tasks(plan)
        self._log.log_batch(results, time.monotonic() - started)
        return [result.error for result in results if result.error is not None]

    def _run_tasks(self, plan: BatchPlan) -> list[TaskResult]:
        raw_partitions = list_raw_partitions(plan.shapes)
        if not raw_partitions:
            self._stop.wait(_BATCH_SECONDS)
            return []
        workers = self._workers.list_workers()
        max_messages = max(1, self._settings.max_offsets_per_trigger // len(workers))
        assignments = {
            worker: Assignment(tuple(assigned), max_messages, _BATCH_SECONDS)
            for worker, assigned in self._placement.assign(raw_partitions, workers).items()
            if assigned
        }
        return self._workers.run_task(BatchTask(plan), assignments)

    def _refresh_offsets(self, plan: BatchPlan) -> None:
        """Refresh the offsets of idle raw partitions while no task commits any."""
        try:
            self._offset_refresh.refresh(list_raw_partitions(plan.shapes))
        except CdcError as error:
            if error.code not in {Code.KAFKA_UNREACHABLE, Code.KAFKA_REFUSED}:
                raise
            _logger.warning("offset refresh failed", code=error.code.text, problem=error.problem, fix=error.fix)


def _log_waiting(error: CdcError) -> None:
    _logger.warning("waiting", code=error.code.text, problem=error.problem, fix=error.fix)
