"""What the driver hands to the tasks of a micro-batch: small, immutable, pickled with the task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cdc_program.settings import KafkaSettings, MaterializerSettings


class TableSchema(NamedTuple):
    """A message of the tables topic: the table's id and the digest (16 bytes each), and the JSON of the value."""

    table_id: bytes
    digest: bytes
    json: bytes


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """How the messages of one raw topic are folded and published.

    `schemas` holds every schema of the topic's table, whatever its id was, in the order of their first appearance in
    the tables topic; changes are published under the schema ids of the last one.
    """

    raw_partitions: int
    change_topic: str
    change_partitions: int
    schemas: tuple[TableSchema, ...]
    key_schema_id: int
    value_schema_id: int


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The plans by raw topic; a raw topic whose table's schema is not known yet has none."""

    topics: dict[str, TopicPlan]
    kafka: KafkaSettings
    materializer: MaterializerSettings
