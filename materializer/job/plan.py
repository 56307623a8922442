"""What the driver sends to the tasks of a batch: small, immutable, pickled with the task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.settings import KafkaSettings
from materializer.job.processor import table_processor
from materializer.records import RawPartition, TopicShape
from materializer.settings import MaterializerSettings

if TYPE_CHECKING:
    from materializer.exactly_once.processor import Processor


class TableSchema(NamedTuple):
    """A message of the tables topic: the table's id and the digest (16 bytes each), and the JSON of the value."""

    table_id: bytes
    digest: bytes
    json: bytes


class ChangeTopic(NamedTuple):
    """The topic to which changes under one schema are sent, its number of partitions, the ids of its Avro schemas, and
    Kafka's id of the topic.
    """

    name: str
    partitions: int
    key_schema_id: int
    value_schema_id: int
    topic_id: str = ""


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """The schemas with which the messages of one raw topic are folded, and the topics to which their changes are sent.

    raw_partitions: the number of the raw topic's partitions.
    schemas: every schema of the topic's table, from the oldest to the newest, whatever the table's id was.
    change_topics: one for each schema; None for a schema under which no change was sent. The newest schema of each
        table id has one.
    max_message_bytes: the smallest max.message.bytes of these topics when they were found.
    topic_id: the raw topic's.
    """

    raw_partitions: int
    schemas: tuple[TableSchema, ...]
    change_topics: tuple[ChangeTopic | None, ...]
    max_message_bytes: int = 1_048_588
    topic_id: str = ""


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The plans by raw topic. A raw topic whose table has no known schema has no plan.

    shapes: the shape of every raw topic when the plan was made. has_watermarks: whether the topic of watermarks exists.
    """

    topics: dict[str, TopicPlan]
    kafka: KafkaSettings
    materializer: MaterializerSettings
    shapes: Mapping[str, TopicShape] = field(default_factory=dict)
    has_watermarks: bool = False

    def processor(self, raw_topic: str) -> Processor:
        """What is done with the raw topic's messages. CdcError(SCHEMA_UNKNOWN) if it has no plan."""
        return table_processor(self, raw_topic)

    def with_partition_count(self, raw_topic: str, partitions: int) -> BatchPlan:
        """This plan as if the raw topic had this many partitions."""
        topic = replace(self.topics[raw_topic], raw_partitions=partitions)
        return replace(self, topics={**self.topics, raw_topic: topic})


class Assignment(NamedTuple):
    """What one worker does in a batch: it reads and folds these raw partitions for `seconds`, and then until the driver
    ends the batch.

    max_messages: how many unfolded messages it holds at most, heartbeats of idle raw partitions not counted.
    retried: those that are stopped still: they do not sleep, so that they tell whether they work.
    """

    raw_partitions: tuple[RawPartition, ...]
    max_messages: int
    seconds: float
    retried: tuple[RawPartition, ...] = ()


def list_raw_partitions(shapes: Mapping[str, TopicShape]) -> list[RawPartition]:
    """All partitions of the raw topics."""
    return [RawPartition(topic, each) for topic, shape in shapes.items() for each in range(shape.partitions)]
