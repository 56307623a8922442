"""The driver: plans a batch, has the workers run it, and stops the shares that fail; until it is stopped."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.driver.batch_log import log_batch
from stream_runtime.driver.placement import Placement
from stream_runtime.driver.scope import OF_THE_JOB, TEMPORARY
from stream_runtime.driver.spark_retries import SparkRetries
from stream_runtime.driver.stop_log import StopLog
from stream_runtime.driver.stopped import Failure
from stream_runtime.query.spark_errors import SparkInterruptedError
from stream_runtime.words import NEUTRAL, Words
from stream_runtime.worker.task import Assignment

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Collection, Mapping, Sequence

    from stream_runtime.driver.offset_refresh import OffsetRefresh
    from stream_runtime.driver.stopped import Stop, StoppedShares
    from stream_runtime.query.progress import Progress
    from stream_runtime.records import Share
    from stream_runtime.settings import JobSettings
    from stream_runtime.worker.task import Task, TaskResult

_logger = structlog.get_logger(__name__)
_BATCH_SECONDS = 1.0  # after which a batch may end, and new tables and schemas are looked for
_RETRY_SECONDS = 2.0


class Plan(Protocol):
    """The plan of a batch. Plans are equal if the same is to be done."""

    @property
    def shares(self) -> Sequence[Share]:
        """All shares, also those of streams that cannot be planned."""
        ...


class Plans(Protocol):
    """The driver's planner."""

    errors: dict[str, CdcError]
    """The errors of streams that cannot be planned, by name."""

    @property
    def pending(self) -> set[str]:
        """The names of streams that are not planned yet."""
        ...

    def plan_batch(self) -> Plan: ...

    def retry(self, streams: Collection[str], /) -> None:
        """The next batch plans these streams again."""
        ...

    def first_share(self, stream: str, /) -> Share:
        """The share that stands for a stream whose shape is unknown, because of an error."""
        ...

    def make_task(self, plan: Any, /) -> Task:  # noqa: ANN401 - a plan of its own
        """The task that the workers run with the plan."""
        ...


class Status(Protocol):
    """The job's status, which the driver fills."""

    stopped: StoppedShares

    def set_shares(self, shares: Sequence[Share], pending: int, /) -> None: ...

    def wait_because(self, problem: str, /) -> None: ...

    def count_batch(self, results: Sequence[TaskResult], progress: Progress | None, /) -> None: ...

    def count_restart(self) -> None: ...


class Workers(Protocol):
    """stream_runtime.query.streaming.StreamingWorkers."""

    def list_workers(self, shares: int) -> Sequence[str]:
        """The names of the workers that are there now, for so many shares; at least one."""
        ...

    def run_task(
        self, task: Task, assignments: Mapping[str, Assignment], is_cut: Callable[[], bool]
    ) -> list[TaskResult]:
        """Have each worker run its assignment, or another worker if it cannot. Any exception ends the job, except
        SparkInterruptedError.

        is_cut: whether the batch is to end soon. It is asked from time to time by the caller's thread.
        """
        ...

    def progress(self) -> Progress | None:
        """Spark's report about the last batch."""
        ...

    def restart(self) -> None:
        """Start again after SparkInterruptedError. SparkInterruptedError if that fails too."""
        ...


class BatchDriver:
    """Runs batch after batch. A share that fails is stopped, and tried again after a pause.

    CdcError for what concerns the whole job (stream_runtime.driver.scope). offset_refresh: None if the workers do that.
    after_batch: gets what the tasks of each batch report, and its plan.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what a job is made of
        self,
        settings: JobSettings,
        planner: Plans,
        stop: threading.Event,
        workers: Workers,
        status: Status,
        words: Words = NEUTRAL,
        offset_refresh: OffsetRefresh | None = None,
        after_batch: Callable[[Sequence[TaskResult], Any], None] = lambda *_: None,
    ) -> None:
        self._planner = planner
        self._stop = stop
        self._workers = workers
        self._settings = settings
        self._status = status
        self._stopped = status.stopped
        self._retries = SparkRetries()
        self._placement = Placement()
        self._words = words
        self._stop_log = StopLog(words)
        self._offset_refresh = offset_refresh
        self._after_batch = after_batch
        self._logged_pending = 0

    def run_until_stopped(self, beat: Callable[[], None]) -> None:
        """Run batches until the job is stopped. `beat` is called after each batch."""
        while not self._stop.is_set():
            try:
                self.run_batch()
            except SparkInterruptedError as error:
                self._restart_workers(error)
            beat()

    def run_batch(self) -> None:
        """Run one batch with all shares that work or are due for another try."""
        self._planner.retry({share.stream for share in self._stopped.begin_tries()})
        plan = self._make_plan()
        if plan is None:
            return
        shares = self._known_shares(plan)
        self._stopped.forget_all_but(shares)
        self._status.set_shares(shares, len(self._planner.pending))
        self._log_pending(len({share.stream for share in plan.shares}))
        self.stop_shares(self._stream_failures(shares))
        if self._offset_refresh is not None and self._offset_refresh.is_due:
            self._refresh_offsets(self._offset_refresh, plan)
        started = time.monotonic()
        results = self._run_tasks(plan)
        seconds = time.monotonic() - started
        self._placement.count_batch(results, seconds)
        log_batch(results, seconds)
        self._status.count_batch(results, self._workers.progress())
        self._after_batch(results, plan)
        self._take_results(results)
        self._stop_log.remind(self._stopped.all())

    def _restart_workers(self, error: SparkInterruptedError) -> None:
        """Start the workers again after a pause; the tasks continue from the committed positions. Raise the error if
        this has lasted for too long, or if the job is to stop.
        """
        while True:
            pause = None if self._stop.is_set() else self._retries.next_pause()
            if pause is None:
                raise error
            self._status.count_restart()
            self._status.wait_because(f"{error.code.text} {error.problem}")
            _logger.warning("spark restarts", code=error.code.text, problem=error.problem, pause_seconds=pause)
            if self._stop.wait(pause):
                return
            try:
                self._workers.restart()
            except SparkInterruptedError as again:
                error = again
            else:
                return

    def stop_shares(self, failures: Mapping[Share, Failure]) -> None:
        """Stop the shares that failed. CdcError if one of the errors concerns the whole job."""
        stops: dict[Share, Stop] = {}
        for share, failure in failures.items():
            if failure.error.code in OF_THE_JOB:
                raise failure.error
            stops[share] = self._stopped.stop(share, failure)
        self._stop_log.log_stops(stops)

    def _log_pending(self, streams: int) -> None:
        """Log how far the planning is, each time that some streams are still being planned, and at its end."""
        pending = len(self._planner.pending)
        if pending != self._logged_pending:
            event = f"{self._words.topics} planned"
            _logger.info(event, planned=streams - pending, topics=streams)
            self._logged_pending = pending

    def _known_shares(self, plan: Plan) -> list[Share]:
        """The plan's shares, and one for each stream whose shape is unknown, because of an error."""
        unknown = sorted(self._planner.errors.keys() - {share.stream for share in plan.shares})
        return [*plan.shares, *map(self._planner.first_share, unknown)]

    def _stream_failures(self, shares: list[Share]) -> dict[Share, Failure]:
        """The shares of streams that cannot be planned, except those that wait for their next try already."""
        errors = self._planner.errors
        return {
            share: Failure(errors[share.stream])
            for share in shares
            if share.stream in errors and self._stopped.may_run(share)
        }

    def _take_results(self, results: list[TaskResult]) -> None:
        failures: dict[Share, Failure] = {}
        for share, report, error, offsets, trace in results:
            if error is not None:
                failures[share] = Failure(error, offsets, trace)
            elif report is not None and (ended := self._stopped.advance(share, report.end)) is not None:
                self._stop_log.log_resumed(share, ended)
        self.stop_shares(failures)

    def _make_plan(self) -> Plan | None:
        """Plan the batch; wait while Kafka is unreachable. None if the job is stopped."""
        while not self._stop.is_set():
            try:
                plan = self._planner.plan_batch()
            except CdcError as error:
                if error.code not in TEMPORARY:
                    raise
                _logger.warning("waiting", code=error.code.text, problem=error.problem, fix=error.fix)
                self._status.wait_because(f"{error.code.text} {error.problem}")
            else:
                self._status.wait_because("")
                return plan
            self._stop.wait(_RETRY_SECONDS)
        return None

    def _run_tasks(self, plan: Plan) -> list[TaskResult]:
        """Stopped shares keep their places, so that no other one moves."""
        workers = self._workers.list_workers(len(plan.shares))
        max_messages = max(1, self._settings.max_offsets_per_trigger // len(workers))
        assignments: dict[str, Assignment] = {}
        pending, stopped = self._planner.pending, self._stopped.all()
        for worker, placed in self._placement.assign(plan.shares, workers).items():
            assigned = tuple(share for share in placed if share.stream not in pending and self._stopped.may_run(share))
            if assigned:
                seconds = min(_BATCH_SECONDS, self._settings.task_seconds)
                retried = tuple(share for share in assigned if share in stopped)
                assignments[worker] = Assignment(assigned, max_messages, seconds, retried)
        if not assignments:
            self._stop.wait(_BATCH_SECONDS)
            return []
        return self._workers.run_task(self._planner.make_task(plan), assignments, self._make_cut(plan))

    def _make_cut(self, plan: Plan) -> Callable[[], bool]:
        """Whether the batch is to end: the job is to stop, a try is due, or the plan is another one by now."""
        errors, pending = set(self._planner.errors), set(self._planner.pending)
        next_look = time.monotonic() + _BATCH_SECONDS

        def is_cut() -> bool:
            nonlocal next_look
            if self._stop.is_set() or self._stopped.has_due_try:
                return True
            if time.monotonic() < next_look:
                return False
            next_look = time.monotonic() + _BATCH_SECONDS
            try:
                is_same = self._planner.plan_batch() == plan
            except CdcError:  # the next batch meets it too
                return True
            return not is_same or (errors, pending) != (set(self._planner.errors), set(self._planner.pending))

        return is_cut

    def _refresh_offsets(self, offset_refresh: OffsetRefresh, plan: Plan) -> None:
        """Refresh the offsets of idle shares while no task commits any."""
        try:
            errors = offset_refresh.refresh(plan.shares)
        except CdcError as error:
            if error.code not in {Code.KAFKA_UNREACHABLE, Code.KAFKA_REFUSED}:
                raise
            _logger.warning("offset refresh failed", code=error.code.text, problem=error.problem, fix=error.fix)
        else:
            found = {share: Failure(error) for share, error in errors.items() if self._stopped.may_run(share)}
            self.stop_shares(found)
