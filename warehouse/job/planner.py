"""Plans each batch on the driver: which topics there are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.topics import matches
from cdc_native import is_enabled
from stream_runtime.kafka import Topics
from warehouse.faults import WAREHOUSE_FAULTS, core_missing, setting_missing, tables_collide
from warehouse.job.plan import WarehousePlan, share_of
from warehouse.job.worker_loop import WarehouseTask
from warehouse.names import same_names
from warehouse.targets.open import open_loader

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from stream_runtime.records import Share, TopicShape
    from warehouse.job.plan import Job

_LOOK_SECONDS = 5.0  # between two looks at the topics
_AWAY_SECONDS = 30.0  # a broker that has just started may not know a topic yet


class TopicPlanner:
    """stream_runtime.driver.driver.Plans. A topic with an error is not planned again before `retry`."""

    def __init__(self, job: Job, clock: Callable[[], float] = time.monotonic) -> None:
        self.errors: dict[str, CdcError] = {}
        self._job = job
        self._clock = clock
        self._topics = Topics(job.kafka)
        self._shapes: dict[str, TopicShape] = {}
        self._next_look = -1.0
        self._away_since: dict[str, float] = {}

    @property
    def pending(self) -> set[str]:
        """No topic's plan takes time."""
        return set()

    def plan_batch(self) -> WarehousePlan:
        """CdcError for what concerns the whole job. KAFKA_UNREACHABLE is temporary."""
        if self._clock() >= self._next_look:
            self._next_look = self._clock() + _LOOK_SECONDS
            self._look()
        return WarehousePlan(self._job, dict(self._shapes))

    def first_share(self, stream: str) -> Share:
        return share_of(stream, 1)

    def make_task(self, plan: WarehousePlan) -> WarehouseTask:
        return WarehouseTask(plan)

    def retry(self, streams: Collection[str]) -> None:
        """The next batch plans these topics again, as they are by then."""
        for topic in streams:
            if self.errors.pop(topic, None) is not None:
                self._shapes.pop(topic, None)
            self._next_look = -1.0

    def find_topics(self) -> list[str]:
        """The names of the topics that the settings choose."""
        if not self._job.settings.topics:
            raise setting_missing("topics", "it names the topics to load")
        return [name for name in sorted(self._topics.partition_counts()) if self._is_chosen(name)]

    def check_settings(self) -> None:
        """Raise CdcError if the job cannot run with its settings. Makes the table of the positions."""
        if not is_enabled():
            raise core_missing()
        for table, topics in same_names(self.find_topics(), self._job.settings.default_schema).items():
            raise tables_collide(table, topics)
        loader = open_loader(self._job.settings)
        try:
            loader.prepare()
        finally:
            loader.connection.close()

    def _is_chosen(self, topic: str) -> bool:
        own = self._job.settings
        return not topic.startswith("__") and matches(topic, own.topics) and not matches(topic, own.excluded_topics)

    def _look(self) -> None:
        """Plan topics that are new, and those that have changed."""
        chosen = self.find_topics()
        for table, topics in same_names(chosen, self._job.settings.default_schema).items():
            self.errors |= {topic: tables_collide(table, topics) for topic in topics if topic not in self._shapes}
        names = {*chosen, *self._shapes} - self.errors.keys()
        for topic, shape in self._topics.each_shape(sorted(names)).items():
            if isinstance(shape, CdcError):
                self._miss(topic, shape)
                continue
            self._away_since.pop(topic, None)
            known = self._shapes.get(topic)
            if known is not None and known.topic_id != shape.topic_id:
                self.errors[topic] = WAREHOUSE_FAULTS.topic_recreated(topic)
            else:
                self._shapes[topic] = shape

    def _miss(self, topic: str, error: CdcError) -> None:
        """A topic that cannot be described. One that is away for long is an error: it may have been deleted."""
        is_new = topic not in self._shapes
        if is_new and error.code is Code.KAFKA_UNREACHABLE:
            return
        if is_new or self._clock() - self._away_since.setdefault(topic, self._clock()) >= _AWAY_SECONDS:
            self.errors[topic] = error
