"""The driver's side of a micro-batch: which raw topics there are, with which schemas, published to which topics.

The tables topic is read to its end before each batch: a schema is acknowledged before the first raw message that uses
it, so what a batch needs is there.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

from cdc_messages.errors import MessageError
from cdc_messages.tables import DIGEST_SIZE, from_json, mark_from_json
from cdc_messages.topics import collisions, table_of, tables_topic
from cdc_program.errors import CdcError, Code
from materializer.exactly_once.position import check_offset, check_shape, check_topic
from materializer.job.change_topics import Publications
from materializer.job.plan import BatchPlan, TableSchema, TopicPlan, raw_partitions
from materializer.kafka import GroupPositions, TopicReader, Topics, driver_errors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdc_program.settings import Settings
    from materializer.job.change_topics import Registry
    from materializer.records import TopicShape

_TABLE_ID_SIZE = 16

TableName = tuple[str, str]

_logger = structlog.get_logger(__name__)


class Tables:
    """The schemas of the tables topic by (keyspace, table), each list from the oldest to the newest.

    Their order is that of the statements which made them, then that of their first appearance: a publisher whose node
    is behind does not make an older schema the newest, nor does the topic's compaction.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._schemas: dict[TableName, dict[tuple[bytes, bytes], tuple[int, TableSchema]]] = {}
        self._marks: dict[bytes, int] = {}

    def add(self, messages: Iterable[tuple[bytes, bytes]]) -> None:
        """Messages of the topic, (key, value); CdcError for one that cannot be read or whose table's topics collide."""
        before = len(self._schemas)
        for key, value in messages:
            if len(key) == _TABLE_ID_SIZE:
                self._add_mark(key, value)
                continue
            schema = TableSchema(key[:_TABLE_ID_SIZE], key[_TABLE_ID_SIZE:], value)
            try:
                table = from_json(value)
            except MessageError as error:
                raise self._unreadable(key, error.reason) from error
            if len(schema.digest) != DIGEST_SIZE or table.id.bytes != schema.table_id:
                raise self._unreadable(key, "its key is not of the table in its value")
            schemas = self._schemas.setdefault((table.keyspace, table.name), {})
            schemas[schema.table_id, schema.digest] = (table.altered_at, schema)  # keeps its place if it is known
        if len(self._schemas) != before:
            self._check_names()

    def schemas(self, table: TableName) -> tuple[TableSchema, ...]:
        known = self._schemas.get(table, {}).values()
        return tuple(schema for _, schema in sorted(known, key=lambda each: each[0]))

    def _add_mark(self, table_id: bytes, value: bytes) -> None:
        try:
            since = mark_from_json(value)
        except MessageError as error:
            raise self._unreadable(table_id, error.reason) from error
        if self._marks.get(table_id) == since:
            return
        self._marks[table_id] = since
        names = [name for name, schemas in self._schemas.items() if any(each == table_id for each, _ in schemas)]
        _logger.warning(
            "table needs a snapshot",
            code=Code.NEEDS_SNAPSHOT.text,
            table=".".join(names[0]) if names else table_id.hex(),
            since=datetime.fromtimestamp(since / 1e6, UTC).isoformat(),
            problem="Rows written while its cdc was off are missing in its change topic.",
            fix="Rebuild the table in the CDC datacenter: what is streamed passes through its commit logs.",
        )

    def _check_names(self) -> None:
        for collision in collisions(self._prefix, self._schemas):
            raise CdcError(
                Code.TOPIC_NAMES_COLLIDE,
                f"Kafka cannot tell the topics {collision.topic} (of {collision.owner}) and {collision.other_topic} "
                f"(of {collision.other_owner}) apart: it takes '.' and '_' for the same.",
                "Publish one of the two with another kafka.topic_prefix.",
            )

    def _unreadable(self, key: bytes, reason: str) -> CdcError:
        return CdcError(
            Code.RAW_MESSAGE,
            f"A message of {tables_topic(self._prefix)} with the key {key.hex()} cannot be read: {reason}.",
            "Run a materializer of the publisher's version or a later one; let nobody else write to that topic.",
        )


class Planner:
    """Makes the plan of each batch; asks the registry and makes topics only when something is new."""

    def __init__(self, settings: Settings, registry: Registry) -> None:
        self._kafka = settings.kafka
        self._materializer = settings.materializer
        self._prefix = settings.kafka.topic_prefix
        self._topics = Topics(settings.kafka)
        self._reader = TopicReader(settings.kafka, tables_topic(self._prefix))
        self._positions = GroupPositions(settings.kafka, settings.materializer.group_id, stable=False)
        self._tables = Tables(self._prefix)
        self._known: dict[str, TopicShape] = {}
        self._plans: dict[str, TopicPlan] = {}
        self._publications = Publications(self._prefix, registry, self._topics.make_change_topic)

    def plan(self) -> BatchPlan:
        """CdcError; REGISTRY_UNREACHABLE and KAFKA_UNREACHABLE may go away."""
        self._tables.add(self._reader.read_to_end())
        shapes = self._topics.shapes(self._raw_topics())
        for topic, shape in shapes.items():
            self._check_topic(topic, shape)
            schemas = self._tables.schemas(table_of(topic))
            known = self._plans.get(topic)
            if schemas and (known is None or known.schemas != schemas):
                publications = self._publications.of(schemas)
                limit = self._topics.max_message_bytes({each.topic for each in publications if each is not None})
                self._plans[topic] = TopicPlan(shape.partitions, schemas, publications, limit, shape.topic_id)
        return BatchPlan(dict(self._plans), self._kafka, self._materializer, shapes)

    def check_settings(self) -> None:
        """CdcError(TRANSACTION_TIMEOUT) where the brokers do not allow what the settings ask for."""
        self._topics.check_transaction_timeout(self._materializer.transaction_timeout_seconds)

    def check_positions(self) -> None:
        """CdcError: RAW_SKIPPED, STATE_MISMATCH, PARTITIONS_CHANGED where a task could not go on from where the group
        stands.
        """
        shapes = self._topics.shapes(self._raw_topics())
        partitions = raw_partitions(shapes)
        with driver_errors(f"read the offsets of the group {self._materializer.group_id}"):
            positions = self._positions.read(partitions)
        bounds = self._topics.bounds(partitions)
        for topic, shape in shapes.items():  # from here on it may not change
            self._check_topic(topic, shape)
        for partition, position in positions.items():
            if position is not None:
                check_topic(position, shapes[partition.topic], partition)
                check_offset(partition, position.offset, bounds[partition])

    def _raw_topics(self) -> list[str]:
        return self._topics.matching(raw_topic_pattern(self._prefix))

    def _check_topic(self, topic: str, shape: TopicShape) -> None:
        known = self._known.get(topic)
        if known is None:
            self._topics.check_raw_topic(topic)
            self._known[topic] = shape
        else:
            check_shape(topic, known, shape)


def raw_topic_pattern(prefix: str) -> str:
    """The regular expression of the names of raw topics.

    It leaves out the change topic of a keyspace called raw.
    """
    return rf"^{re.escape(prefix)}\.raw\.[^.]+\.[^.]+$"
