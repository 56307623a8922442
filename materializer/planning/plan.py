"""How the messages of one raw topic are folded: its schemas, and the topics to which their changes are sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from cdc_common.messages.avro.type_forms import EXACT, TypeForms


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
    topic_id: the raw topic's. forms: of the messages under all these schemas.
    """

    raw_partitions: int
    schemas: tuple[TableSchema, ...]
    change_topics: tuple[ChangeTopic | None, ...]
    max_message_bytes: int = 1_048_588
    topic_id: str = ""
    forms: TypeForms = EXACT
