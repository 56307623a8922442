"""The raw topics that tables are published to, created or checked, and the registry ids of their schema.

The tables topic gets each table's own schema first.
"""

from __future__ import annotations

from hashlib import sha256
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import structlog

from cdc_messages import tables as table_messages
from cdc_messages import topics as names
from cdc_messages.errors import MessageError
from cdc_messages.raw import RAW_SCHEMA
from cdc_program.errors import CdcError, Code
from publisher import state_files
from publisher.inflight import PendingMessages
from publisher.schema import PublishedTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Any, Protocol

    from publisher.kafka.sender import Sender
    from publisher.kafka.topic_admin import TopicAdmin

    class Registry(Protocol):
        """What is used of cdc_program.registry.RegistryClient. CdcError REGISTRY_UNREACHABLE or REGISTRY_REFUSED."""

        def register(self, subject: str, schema: dict[str, Any]) -> int: ...

        def check_reachable(self) -> None: ...


SCHEMA_SECONDS = 10.0
_TABLE_ID_SIZE = 16

log = structlog.get_logger(__name__)


class RawTopic(NamedTuple):
    """The raw topic of a table, ready for messages. `partitions`: the number of raw partitions."""

    table: PublishedTable
    name: str
    partitions: int
    schema_id: int


def send_to_all_raw_partitions(
    sender: Sender, raw_topic: RawTopic, value: bytes, pending: PendingMessages, wait_for_room: Callable[[], None]
) -> None:
    """Send a message without a key to each raw partition; `wait_for_room` is called while the queue is full."""
    pending.outstanding += raw_topic.partitions
    for raw_partition in range(raw_topic.partitions):
        while not sender.send_to_raw_partition(raw_topic.name, raw_partition, value, pending):
            wait_for_room()


class RegistryIds:
    """The ids of the raw message's schema by subject, stored in a file: with it the registry at `url` may be down.

    `connect` is called only for an id that is not known yet.
    """

    def __init__(self, file: Path, url: str, connect: Callable[[], AbstractContextManager[Registry]]) -> None:
        self._file = file
        self._connect = connect
        self._source = {"schema": RAW_SCHEMA, "registry": sha256(url.encode()).hexdigest()}  # a URL may hold secrets
        stored = state_files.read(file) or {}
        is_same_source = {name: stored.get(name) for name in self._source} == self._source
        self._ids: dict[str, int] = stored["ids"] if is_same_source else {}

    def check_registry(self) -> None:
        """Raise CdcError REGISTRY_UNREACHABLE or _REFUSED if no id is known and the registry does not answer.

        It asks for nothing that needs a right in all namespaces.
        """
        if not self._ids:
            with self._connect() as registry:
                registry.check_reachable()

    def schema_id(self, subject: str) -> int:
        """The id; registers the schema at the first call. CdcError REGISTRY_UNREACHABLE or _REFUSED."""
        if subject not in self._ids:
            with self._connect() as registry:
                self._ids[subject] = registry.register(subject, RAW_SCHEMA)
            state_files.write(self._file, {**self._source, "ids": self._ids})
        return self._ids[subject]


class RawTopics:
    """The open raw topics by table. A table whose schema changes is opened again. `opened`: how many were opened so
    far. `requests`: the times of the materializer's requests for snapshots, by table id (cdc_messages.tables).
    """

    def __init__(self, prefix: str, cluster: str, admin: TopicAdmin, sender: Sender, ids: RegistryIds) -> None:
        self._prefix = prefix
        self._cluster = cluster
        self._admin = admin
        self._sender = sender
        self._ids = ids
        self._tables_topic = names.tables_topic(prefix)
        self.watermarks_topic = names.watermarks_topic(prefix)
        self._open: dict[bytes, RawTopic] = {}
        self.opened = 0
        self._partitions: dict[str, int] = {}
        self._sent_schemas: dict[bytes, bytes] = {}
        self._read_to = 0
        self.requests: dict[bytes, int] = {}

    def open_tables_topic(self) -> None:
        """Create or check the topics of table schemas and of watermarks, and read the first. CdcError if Kafka is
        unreachable or refuses, or if another Cassandra cluster publishes under the same prefix.
        """
        self._admin.check_reachable()
        self._admin.ensure_tables_topic(self._tables_topic)
        self._admin.ensure_watermarks_topic(self.watermarks_topic)
        latest, self._read_to = self._admin.read_latest_values(self._tables_topic)
        self._check_cluster(latest.values())
        self._sent_schemas = latest
        self._add_requests(latest)

    def read_requests(self) -> None:
        """Read the materializer's requests for snapshots, and the marks of all hosts. CdcError KAFKA_UNREACHABLE."""
        latest, self._read_to = self._admin.read_latest_values(self._tables_topic, self._read_to)
        self._sent_schemas |= {key: value for key, value in latest.items() if len(key) == _TABLE_ID_SIZE}
        self._add_requests(latest)

    def find_open(self, table: PublishedTable) -> RawTopic | None:
        """The table's raw topic, if it is open with this schema."""
        raw_topic = self._open.get(table.id)
        return raw_topic if raw_topic is not None and raw_topic.table is table else None

    def open(self, table: PublishedTable) -> RawTopic:
        """The table's raw topic, opened if it is not. CdcError if Kafka or the registry is unreachable or refuses."""
        raw_topic = self.find_open(table)
        if raw_topic is None:
            raw_topic = self._open[table.id] = self._prepare(table)
            self.opened += 1
        return raw_topic

    def send_mark(self, table: PublishedTable) -> None:
        """Send that the table needs a snapshot, if it does. All hosts have one mark in the topic: the latest stands.
        CdcError KAFKA_UNREACHABLE.
        """
        if table.needs_snapshot_since and table.needs_snapshot_since > self._mark_of(table):
            self._send_schema(table, table.id, table_messages.mark_to_json(table.needs_snapshot_since))

    def clear_mark(self, table: PublishedTable, up_to: int) -> None:
        """Send that the table needs no snapshot any more, unless the mark that `read_requests` has read is later than
        `up_to` (µs): another host's. CdcError KAFKA_UNREACHABLE.
        """
        if 0 < self._mark_of(table) <= up_to:
            self._send_schema(table, table.id, table_messages.mark_to_json(0))

    def _mark_of(self, table: PublishedTable) -> int:
        """That in the topic, as far as it is read."""
        value = self._sent_schemas.get(table.id)
        try:
            return 0 if value is None else table_messages.mark_from_json(value)
        except MessageError:
            return 0

    def refresh_partition_counts(self) -> None:
        """Find raw partitions that were added, and check the settings of the raw topics. CdcError KAFKA_UNREACHABLE or
        TOPIC_SETTINGS.
        """
        counts = self._admin.read_partition_counts()
        self._admin.check_raw_topics({each.name for each in self._open.values()})  # a recreated table keeps its topic
        for gone in self._partitions.keys() - counts:
            del self._partitions[gone]  # a recreated table creates it again
        for table_id, raw_topic in self._open.items():
            count = counts.get(raw_topic.name, raw_topic.partitions)
            if count != raw_topic.partitions:
                self._sender.refresh_metadata(raw_topic.name)  # its own refresh may come up to a minute later
                log.info("raw topic has more partitions", topic=raw_topic.name, before=raw_topic.partitions, now=count)
                self._partitions[raw_topic.name] = count
                self._open[table_id] = raw_topic._replace(partitions=count)

    def _prepare(self, table: PublishedTable) -> RawTopic:
        name = names.raw_topic(self._prefix, table.table.keyspace, table.table.name)
        if name not in self._partitions:
            self._check_names(table.table.keyspace, table.table.name)
            self._partitions[name] = self._admin.ensure_raw_topic(name)
        schema_id = self._ids.schema_id(f"{name}-value")
        if self._send_schema(table, table.id + table.digest, table_messages.to_json(table.table, self._cluster)):
            log.info("table schema sent", table=table.table.qualified_name, topic=name, digest=table.digest.hex())
        return RawTopic(table, name, self._partitions[name], schema_id)

    def _check_cluster(self, values: Iterable[bytes]) -> None:
        clusters = {name for name in map(table_messages.cluster_name, values) if name}
        if others := sorted(clusters - {self._cluster}):
            raise CdcError(
                Code.TOPIC_PREFIX_TAKEN,
                f"{self._tables_topic} has table schemas of the Cassandra cluster {', '.join(others)}; this node "
                f"belongs to {self._cluster}. Both would publish to the same topics.",
                "Give each Cassandra cluster a kafka.topic_prefix of its own, in the settings of all its programs.",
            )

    def _add_requests(self, latest: Mapping[bytes, bytes]) -> None:
        for key, value in latest.items():
            table_id = table_messages.requested_table(key)
            if table_id is None:
                continue
            try:
                self.requests[table_id] = table_messages.request_from_json(value)
            except MessageError as error:
                log.warning("request for a snapshot not read", topic=self._tables_topic, reason=error.reason)

    def _check_names(self, keyspace: str, name: str) -> None:
        tables = {(each.table.table.keyspace, each.table.table.name) for each in self._open.values()}
        for collision in names.collisions(self._prefix, tables | {(keyspace, name)}):
            raise CdcError(
                Code.TOPIC_NAMES_COLLIDE,
                f"Kafka cannot distinguish the topic {collision.topic} of {collision.owner} from"
                f" {collision.other_topic} of {collision.other_owner}.",
                "Set cdc = false on one of the two, or rename it; kafka.topic_prefix without '_' avoids some of these.",
            )

    def _send_schema(self, table: PublishedTable, key: bytes, value: bytes) -> bool:
        """Send a message to the tables topic and wait for its acknowledgement; False if the topic has it already."""
        if self._sent_schemas.get(key) == value:
            return False
        pending = PendingMessages(outstanding=1)
        deadline = monotonic() + SCHEMA_SECONDS
        is_queued = False
        while pending.outstanding:
            is_queued = is_queued or self._sender.send(self._tables_topic, key, value, pending)
            self._sender.poll(0.05)
            if monotonic() > deadline:
                raise CdcError(
                    Code.KAFKA_UNREACHABLE,
                    f"Kafka does not acknowledge the schema of {table.table.qualified_name} in {self._tables_topic}.",
                    "Check the brokers' logs and min.insync.replicas; the publisher retries.",
                )
        self._sent_schemas[key] = value
        return True
