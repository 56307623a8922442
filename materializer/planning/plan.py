"""How the messages of one raw topic are folded: its schemas, and the topics to which their changes are sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from cdc_common.messages.avro.type_forms import TypeForms


class TableSchema(NamedTuple):
    """A message of the tables topic."""

    # The table's id (16 bytes).
    table_id: bytes
    # The schema's digest (16 bytes).
    digest: bytes
    # The message's value.
    json: bytes


class ChangeTopic(NamedTuple):
    """The topic to which changes under one schema are sent."""

    # Its name.
    name: str
    # Its number of partitions.
    partitions: int
    # The registry's id of the key's Avro schema.
    key_schema_id: int
    # The registry's id of the value's Avro schema.
    value_schema_id: int
    # Kafka's id of the topic.
    topic_id: str = ""


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """The schemas that fold the messages of one raw topic, and the topics to which their changes are sent."""

    # The number of the raw topic's partitions.
    raw_partitions: int
    # Every schema of the topic's table, from the oldest to the newest, whatever the table's id was.
    schemas: tuple[TableSchema, ...]
    # One for each schema; None for a schema under which no change was sent. The newest schema of each table id has one.
    change_topics: tuple[ChangeTopic | None, ...]
    # The smallest max.message.bytes of these topics when they were found.
    max_message_bytes: int = 1_048_588
    # Kafka's id of the raw topic.
    topic_id: str = ""
    # The forms of values in the messages under all these schemas.
    forms: TypeForms = field(kw_only=True)
