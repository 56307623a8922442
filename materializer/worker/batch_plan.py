"""The plan that the driver sends to the tasks of a batch: small, immutable, pickled with the task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cdc_common.settings import KafkaSettings
from materializer.planning.plan import TopicPlan
from materializer.processing.processor import fold_settings, rules_mark, table_processor
from materializer.settings import MaterializerSettings
from stream_runtime.records import Share, TopicShape, list_shares

if TYPE_CHECKING:
    from materializer.processing.raw_processor import RawProcessor


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The plan of a batch."""

    # The plans by raw topic. A raw topic whose table has no known schema has none.
    topics: dict[str, TopicPlan]
    # Settings of Kafka.
    kafka: KafkaSettings
    # Settings of the materializer.
    materializer: MaterializerSettings
    # The shape of every raw topic when the plan was made.
    shapes: Mapping[str, TopicShape] = field(default_factory=dict)
    # Whether the topic of watermarks exists.
    has_watermarks: bool = False

    @property
    def shares(self) -> list[Share]:
        """A share for each raw partition."""
        return list_shares(self.shapes)

    def processor(self, raw_topic: str) -> RawProcessor:
        """The processor of the raw topic's messages. CdcError(SCHEMA_UNKNOWN) if it has no plan."""
        return table_processor(self.topics.get(raw_topic), raw_topic, self.kafka, self.materializer)

    def rules_mark(self, raw_topic: str) -> int:
        """A hash of what a raw topic's messages are folded with: another one may give a state something to do. -1
        without a plan.
        """
        topic_plan = self.topics.get(raw_topic)
        return -1 if topic_plan is None else rules_mark(topic_plan, fold_settings(self.materializer))

    def with_partition_count(self, raw_topic: str, partitions: int) -> BatchPlan:
        """This plan as if the raw topic had this many partitions."""
        topic = replace(self.topics[raw_topic], raw_partitions=partitions)
        return replace(self, topics={**self.topics, raw_topic: topic})
