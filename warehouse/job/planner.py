"""Plans each batch on the driver: which topics there are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cdc_native import is_enabled
from stream_runtime.driver.file_topics import FileChosenTopics
from stream_runtime.kafka import Topics
from warehouse.faults import WAREHOUSE_FAULTS
from warehouse.job.definitions import definition_of, file_topics
from warehouse.job.plan import WarehousePlan, share_of
from warehouse.job.worker_loop import WarehouseTask
from warehouse.names import table_name
from warehouse.targets.open import open_loader

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_runtime.records import Share
    from warehouse.job.definitions import Definition
    from warehouse.job.plan import Job


class TopicPlanner(FileChosenTopics):
    """stream_runtime.driver.driver.Plans."""

    def __init__(self, job: Job, clock: Callable[[], float] = time.monotonic) -> None:
        files = file_topics(job.registry, job.settings)
        super().__init__(Topics(job.kafka), job.settings, WAREHOUSE_FAULTS, clock, files)
        self._job = job

    def plan_batch(self) -> WarehousePlan:
        """CdcError for what concerns the whole job. KAFKA_UNREACHABLE is temporary."""
        shapes = self.find_shapes()
        return WarehousePlan(self._job, shapes, {topic: self.definition_of(topic) for topic in shapes})

    def first_share(self, stream: str) -> Share:
        return share_of(stream, 1)

    def make_task(self, plan: WarehousePlan) -> WarehouseTask:
        return WarehouseTask(plan)

    def definition_of(self, topic: str) -> Definition:
        """How the table of a topic is made now."""
        return definition_of(topic, self._job.settings, self.from_files)

    def table_of(self, topic: str) -> str:
        return str(table_name(topic, self._job.settings.default_schema))

    def check_settings(self) -> None:
        """Raise CdcError if the job cannot run with its settings. Makes the table of the positions."""
        if not is_enabled():
            raise WAREHOUSE_FAULTS.core_missing()
        self.check_tables()
        loader = open_loader(self._job.settings)
        try:
            loader.prepare()
        finally:
            loader.connection.close()
