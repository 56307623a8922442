"""A worker reads its topics and loads their tables (stream_runtime.worker.loop)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from cdc_common.errors.codes import CdcError
from stream_runtime.exactly_once.report import NOTHING_DONE, Report
from stream_runtime.worker.loop import LoopTask, WorkerLoop, poll_seconds
from stream_runtime.worker.task import WorkerStatus
from warehouse.faults import WAREHOUSE_FAULTS
from warehouse.job.open_tables import OpenTables
from warehouse.loading.report import LoadReport
from warehouse.targets.connection import LoadTakenError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from stream_runtime.kafka.source_reader import Read
    from stream_runtime.records import Share
    from stream_runtime.worker.task import Assignment
    from warehouse.job.plan import Job, WarehousePlan

_logger = structlog.get_logger(__name__)


class WarehouseTask(LoopTask["WarehousePlan"]):
    """Loads in a worker."""

    def loop_key(self, plan: WarehousePlan) -> Hashable:
        return "warehouse", plan.job.settings.group_id

    def make_loop(self, plan: WarehousePlan) -> WarehouseLoop:
        return WarehouseLoop(plan.job)


class WarehouseLoop(WorkerLoop["WarehousePlan"]):
    """A worker's open tables."""

    def __init__(self, job: Job) -> None:
        super().__init__(WAREHOUSE_FAULTS.words)
        self._poll_seconds = poll_seconds(job.settings.trigger_interval_ms)
        self._tables = OpenTables(job)
        self._assigned: set[Share] = set()
        self._is_behind = False

    def begin_batch(self, plan: WarehousePlan, assignment: Assignment) -> None:
        self._assigned = set(assignment.shares)
        self._tables.keep(plan, self._assigned)

    def poll_and_process(self, plan: WarehousePlan, assignment: Assignment) -> None:
        for share in sorted(self._assigned - self._tables.shares - self.failed):
            with self.isolated(share, f"open {share}"):
                offsets = self._tables.open(plan, share)
                self.add_report(share, NOTHING_DONE._replace(own=_opened(offsets)))
        self._tables.release()
        try:
            read = self._tables.read(assignment.max_messages, self._poll_seconds)
        except CdcError as error:
            self.fail_all(self._tables.shares, error)
            return
        count = sum(self._process(share, read) for share in sorted(self._tables.shares))
        self._tables.release()
        self._is_behind = count >= assignment.max_messages

    def status(self) -> WorkerStatus:
        return WorkerStatus(is_behind=self._is_behind, has_failed=bool(self.failed))

    def forget(self, share: Share) -> None:
        self._tables.close(share)

    def close(self) -> None:
        self._tables.close_all()

    def _process(self, share: Share, read: Read) -> int:
        """Take what was read of a topic, and load its table if it is time. Return the number of messages."""
        failed = next((read.errors[at] for at in sorted(set(share.partitions) & read.errors.keys())), None)
        if failed is not None:
            self.fail(share, failed)
            return 0
        count = 0
        with self.isolated(share, f"load messages of {share}"):
            try:
                count = self._tables.take(share, read)
                report = self._tables.load_due(share)
            except LoadTakenError:
                _logger.warning("table loaded by another process", topic=str(share))
                self._tables.close(share)
                return count
            if report is not None:
                self.add_report(share, _report(report))
        return count


def _opened(offsets: dict[int, int]) -> LoadReport:
    """The report of a table that was opened: the offsets that it is at."""
    return LoadReport(0, 0, 0, 0, 0, 0.0, offsets)


def _report(load: LoadReport) -> Report:
    return NOTHING_DONE._replace(
        messages=load.messages, changes=load.rows, chunks=1, seconds=load.seconds, native=load.messages, own=load
    )
