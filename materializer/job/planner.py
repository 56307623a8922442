"""Plans each batch on the driver: the raw topics, the schemas of their tables, and their change topics.

The planner reads the tables topic to its end before each batch. A publisher sends a schema and waits for its
acknowledgement before it sends the first raw message that uses it, so the batch's schemas are there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cdc_messages.topics import table_of, tables_topic
from materializer.exactly_once.position import check_offset, check_shape, check_topic
from materializer.job.change_topics import ChangeTopics
from materializer.job.plan import BatchPlan, TopicPlan, list_raw_partitions
from materializer.job.table_schemas import TableSchemas
from materializer.kafka import GroupPositions, TopicReader, Topics, driver_errors

if TYPE_CHECKING:
    from cdc_program.settings import Settings
    from materializer.job.change_topics import Registry
    from materializer.records import TopicShape


class Planner:
    """Makes the plan of each batch. Asks the registry and creates topics only for new tables and schemas."""

    def __init__(self, settings: Settings, registry: Registry) -> None:
        self._kafka = settings.kafka
        self._materializer = settings.materializer
        self._prefix = settings.kafka.topic_prefix
        self._topics = Topics(settings.kafka)
        self._reader = TopicReader(settings.kafka, tables_topic(self._prefix))
        self._positions = GroupPositions(settings.kafka, settings.materializer.group_id, stable=False)
        self._table_schemas = TableSchemas(self._prefix)
        self._shapes: dict[str, TopicShape] = {}
        self._plans: dict[str, TopicPlan] = {}
        self._change_topics = ChangeTopics(self._prefix, registry, self._topics.make_change_topic)

    def plan_batch(self) -> BatchPlan:
        """CdcError. REGISTRY_UNREACHABLE and KAFKA_UNREACHABLE are temporary."""
        self._table_schemas.add(self._reader.read_to_end())
        shapes = self._topics.shapes(self._find_raw_topics())
        for topic, shape in shapes.items():
            self._check_shape(topic, shape)
            schemas = self._table_schemas.for_table(table_of(topic))
            known = self._plans.get(topic)
            if schemas and (known is None or known.schemas != schemas):
                change_topics = self._change_topics.find_or_create(schemas)
                limit = self._topics.max_message_bytes({each.name for each in change_topics if each is not None})
                self._plans[topic] = TopicPlan(shape.partitions, schemas, change_topics, limit, shape.topic_id)
        return BatchPlan(dict(self._plans), self._kafka, self._materializer, shapes)

    def check_settings(self) -> None:
        """CdcError(TRANSACTION_TIMEOUT) if the brokers do not allow the settings."""
        self._topics.check_transaction_timeout(self._materializer.transaction_timeout_seconds)

    def check_positions(self) -> None:
        """CdcError RAW_SKIPPED, STATE_MISMATCH or RAW_PARTITIONS_CHANGED if a task could not continue."""
        shapes = self._topics.shapes(self._find_raw_topics())
        raw_partitions = list_raw_partitions(shapes)
        with driver_errors(f"read the offsets of the group {self._materializer.group_id}"):
            positions = self._positions.read(raw_partitions)
        bounds = self._topics.bounds(raw_partitions)
        for topic, shape in shapes.items():  # it must not change from now on
            self._check_shape(topic, shape)
        for raw_partition, position in positions.items():
            if position is not None:
                check_topic(position, shapes[raw_partition.topic], raw_partition)
                check_offset(raw_partition, position.offset, bounds[raw_partition])

    def _find_raw_topics(self) -> list[str]:
        return self._topics.matching(raw_topic_pattern(self._prefix))

    def _check_shape(self, topic: str, shape: TopicShape) -> None:
        known = self._shapes.get(topic)
        if known is None:
            self._topics.check_raw_topic(topic)
            self._shapes[topic] = shape
        else:
            check_shape(topic, known, shape)


def raw_topic_pattern(prefix: str) -> str:
    """The regular expression of the names of raw topics.

    It does not match the change topic of a keyspace called raw.
    """
    return rf"^{re.escape(prefix)}\.raw\.[^.]+\.[^.]+$"
