"""A worker loads the tables of its topics (stream_runtime.worker.share_loop)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_runtime.worker.loop import LoopTask
from stream_runtime.worker.share_loop import ShareLoop
from warehouse.faults import WAREHOUSE_FAULTS
from warehouse.job.open_batches import OpenBatches
from warehouse.job.open_signals import OpenSignals
from warehouse.job.open_tables import OpenTables
from warehouse.job.plan import WarehousePlan

if TYPE_CHECKING:
    from collections.abc import Hashable

    from warehouse.job.plan import Job


class WarehouseTask(LoopTask[WarehousePlan]):
    """Loads in a worker."""

    def loop_key(self, plan: WarehousePlan) -> Hashable:
        return "warehouse", plan.job.role, plan.job.settings.group_id

    def make_loop(self, plan: WarehousePlan) -> ShareLoop[WarehousePlan]:
        return open_loop(plan.job)


def open_loop(job: Job) -> ShareLoop[WarehousePlan]:
    """The loop of a worker, without open tables."""
    opens = {"load": OpenTables, "write": OpenBatches, "copy": OpenSignals}[job.role]
    return ShareLoop(WAREHOUSE_FAULTS.words, opens(job), job.settings.trigger_interval_ms)
