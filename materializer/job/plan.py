"""What the driver hands to the tasks of a micro-batch: small, immutable, pickled with the task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from cdc_program.settings import KafkaSettings, MaterializerSettings
from materializer.job.processor import table_processor
from materializer.records import RawPartition, TopicShape

if TYPE_CHECKING:
    from materializer.exactly_once.processor import Processor


class TableSchema(NamedTuple):
    """A message of the tables topic: the table's id and the digest (16 bytes each), and the JSON of the value."""

    table_id: bytes
    digest: bytes
    json: bytes


class Publication(NamedTuple):
    """Where changes under one schema go: a change topic, the number of its partitions, the ids of its Avro schemas."""

    topic: str
    partitions: int
    key_schema_id: int
    value_schema_id: int


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """How the messages of one raw topic are folded and published.

    `schemas` holds every schema of the topic's table, whatever its id was, from the oldest to the newest, and
    `publications` what belongs to each: None of one under which nothing has been published; the newest of each table
    id has one. max_message_bytes: the smallest max.message.bytes of their topics, as it was when they were looked up.
    topic_id: the raw topic's.
    """

    raw_partitions: int
    schemas: tuple[TableSchema, ...]
    publications: tuple[Publication | None, ...]
    max_message_bytes: int = 1_048_588
    topic_id: str = ""


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The plans by raw topic; a raw topic whose table's schema is not known yet has none. `shapes`: what all raw topics
    were like when the plan was made.
    """

    topics: dict[str, TopicPlan]
    kafka: KafkaSettings
    materializer: MaterializerSettings
    shapes: Mapping[str, TopicShape] = field(default_factory=dict)

    def processor(self, raw_topic: str) -> Processor:
        """What is done with the raw topic's messages. CdcError(SCHEMA_UNKNOWN) if it has no plan."""
        return table_processor(self, raw_topic)

    def with_partition_count(self, raw_topic: str, partitions: int) -> BatchPlan:
        """This plan as if the raw topic had this many partitions."""
        topic = replace(self.topics[raw_topic], raw_partitions=partitions)
        return replace(self, topics={**self.topics, raw_topic: topic})


class Share(NamedTuple):
    """What one worker does in a batch: it reads and folds these partitions for that time, holding at most so many
    messages, besides heartbeats, at a time.
    """

    partitions: tuple[RawPartition, ...]
    messages: int
    seconds: float


def raw_partitions(shapes: Mapping[str, TopicShape]) -> list[RawPartition]:
    """All partitions of the raw topics."""
    return [RawPartition(topic, each) for topic, shape in shapes.items() for each in range(shape.partitions)]
