"""Plans each batch on the driver: which topics there are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError
from cdc_native import is_enabled
from stream_runtime.driver.file_topics import FileChosenTopics
from stream_runtime.kafka import Topics
from stream_runtime.records import Share, SourcePartition
from warehouse.faults import WAREHOUSE_FAULTS, signals_too_few
from warehouse.files import check_store, open_store
from warehouse.job.definitions import definition_of, file_topics
from warehouse.job.plan import SIGNAL_BYTES, WarehousePlan, share_of, signals_of, source_of
from warehouse.job.worker_loop import WarehouseTask
from warehouse.names import table_name
from warehouse.targets.open import open_loader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stream_runtime.records import TopicShape
    from warehouse.job.definitions import Definition
    from warehouse.job.plan import Job


class TopicPlanner(FileChosenTopics):
    """stream_runtime.driver.driver.Plans."""

    def __init__(self, job: Job, clock: Callable[[], float] = time.monotonic) -> None:
        files = file_topics(job.registry, job.settings)
        self._kafka = Topics(job.kafka)
        super().__init__(self._kafka, job.settings, WAREHOUSE_FAULTS, clock, files)
        self._job = job
        self._has_signals: dict[str, TopicShape] = {}

    def plan_batch(self) -> WarehousePlan:
        """CdcError for what concerns the whole job. KAFKA_UNREACHABLE is temporary."""
        shapes = self.find_shapes()
        if self._job.role == "write":
            self._make_signals(shapes)
            shapes = {topic: shape for topic, shape in shapes.items() if self._has_signals.get(topic) == shape}
        return WarehousePlan(self._job, shapes, {topic: self.definition_of(topic) for topic in shapes})

    def first_share(self, stream: str) -> Share:
        return Share.of(SourcePartition(stream, 0)) if self._job.role == "write" else share_of(stream, 1)

    def make_task(self, plan: WarehousePlan) -> WarehouseTask:
        return WarehouseTask(plan)

    def is_chosen(self, topic: str) -> bool:
        """Whether the settings or a topic file choose the topic. Topics of signals are chosen by their topics."""
        source = source_of(topic, self._job.settings)
        if self._job.role == "copy":
            return bool(source) and super().is_chosen(source)
        return not source and super().is_chosen(topic)

    def definition_of(self, topic: str) -> Definition:
        """How the table of a topic is made now."""
        return definition_of(self._source(topic), self._job.settings, self.from_files)

    def table_of(self, topic: str) -> str:
        return str(table_name(self._source(topic), self._job.settings.default_schema))

    def check_settings(self) -> None:
        """Raise CdcError if the job cannot run with its settings. Makes the table of the positions."""
        own, role = self._job.settings, self._job.role
        if not is_enabled():
            raise WAREHOUSE_FAULTS.core_missing()
        self.check_tables()
        if role != "load":
            check_store(open_store(own.location))
        if role == "write":
            self._kafka.check_transaction_timeout(own.transaction_timeout_seconds)
            return
        loader = open_loader(own)
        try:
            loader.prepare()
        finally:
            loader.connection.close()

    def _source(self, topic: str) -> str:
        """The topic whose messages are loaded."""
        return source_of(topic, self._job.settings) if self._job.role == "copy" else topic

    def _make_signals(self, shapes: Mapping[str, TopicShape]) -> None:
        """Make the topics of signals of topics that are new. A topic with more partitions than it is not written."""
        for topic in shapes.keys() - self.errors.keys():
            if self._has_signals.get(topic) == shapes[topic]:
                continue
            name, wanted = signals_of(topic, self._job.settings), shapes[topic].partitions
            try:
                found = self._kafka.make_kept_topic(name, SIGNAL_BYTES, wanted).partitions
            except CdcError as error:
                self.errors[topic] = error
                continue
            if found < wanted:
                self.errors[topic] = signals_too_few(name, found, wanted)
            else:
                self._has_signals[topic] = shapes[topic]
