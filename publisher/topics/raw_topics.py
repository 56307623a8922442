"""The raw topics that tables are published to, created or checked, and the registry ids of their schema.

The tables topic gets each table's own schema first.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import structlog

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages import tables as table_messages
from cdc_common.messages import topics as names
from cdc_common.messages.errors import MessageError
from cdc_common.messages.raw import RAW_SCHEMA
from publisher import state_files
from publisher.inflight import PendingMessages
from publisher.kafka.table_error import TableError
from publisher.tables.published_table import PublishedTable
from publisher.tables.schema_times import SchemaTimes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Any, Protocol

    from publisher.kafka.sender import Refusal, Sender
    from publisher.kafka.topic_admin import TopicAdmin
    from publisher.waits import Waits

    class Registry(Protocol):
        """The used part of clients.registry.RegistryClient. CdcError REGISTRY_UNREACHABLE or REGISTRY_REFUSED."""

        def register(self, subject: str, schema: dict[str, Any]) -> int: ...

        def check_reachable(self) -> None: ...


SCHEMA_SECONDS = 10.0
FULL_QUEUE_SECONDS = 0.1

log = structlog.get_logger(__name__)


class FoundTopic(NamedTuple):
    """A raw topic that exists with the right settings."""

    # Its name.
    name: str
    # Its number of partitions.
    partitions: int
    # The registry's id of the schema of raw messages.
    schema_id: int
    # It had to be created.
    is_new: bool


class RawTopic(NamedTuple):
    """The raw topic of a table, ready for messages."""

    # The published table.
    table: PublishedTable
    # The topic's name.
    name: str
    # the number of raw partitions
    partitions: int
    # The registry's id of the schema of raw messages.
    schema_id: int


def send_to_all_raw_partitions(
    sender: Sender, raw_topic: RawTopic, value: bytes, pending: PendingMessages
) -> Waits[None]:
    """Send a message without a key to each raw partition. It waits while the queue is full."""
    pending.outstanding += raw_topic.partitions
    for raw_partition in range(raw_topic.partitions):
        while not sender.send_to_raw_partition(raw_topic.name, raw_partition, value, pending):
            yield FULL_QUEUE_SECONDS


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
        self._lock = Lock()

    def check_registry(self) -> None:
        """Raise CdcError REGISTRY_UNREACHABLE or _REFUSED if no id is known and the registry does not answer.

        It asks for nothing that needs a right in all namespaces.
        """
        if not self._ids:
            with self._connect() as registry:
                registry.check_reachable()

    def schema_id(self, subject: str) -> int:
        """The id; registers the schema at the first call. CdcError REGISTRY_UNREACHABLE or _REFUSED. May be called from
        any thread.
        """
        if subject not in self._ids:
            with self._connect() as registry:
                schema_id = registry.register(subject, RAW_SCHEMA)
            with self._lock:
                self._ids[subject] = schema_id
                state_files.write(self._file, {**self._source, "ids": self._ids})
        return self._ids[subject]


class RawTopics:
    """The open raw topics by table. A table whose schema changes is opened again. `opened`: how many were opened so
    far. `requests`: the times of the materializer's requests for snapshots, by table id (cdc_common.messages.tables).
    `on_node`: the ids of the tables that are published now, whose names must not collide.
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
        self._closed: dict[bytes, RawTopic] = {}
        self.opened = 0
        self._partitions: dict[str, int] = {}
        self._sent_schemas: dict[bytes, bytes] = {}
        self._times = SchemaTimes()
        self._read_to = 0
        self.requests: dict[bytes, int] = {}
        self.on_node: set[bytes] = set()

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
        self._times.note(latest)
        self._add_requests(latest)

    def check_existing(self, tables: Iterable[PublishedTable]) -> None:
        """Check the raw topics that these tables have, in a few requests: opening one asks for nothing of Kafka then.
        Those that cannot be used are left to `find_topic`, and new ones. CdcError KAFKA_UNREACHABLE.
        """
        counts = self._admin.read_partition_counts()
        wanted = {names.raw_topic(self._prefix, table.table.keyspace, table.table.name) for table in tables}
        usable = self._admin.find_usable(wanted & counts.keys())
        self._partitions |= {topic: counts[topic] for topic in usable}

    def read_requests(self) -> None:
        """Read the materializer's requests for snapshots, and the marks and schemas of all hosts. CdcError
        KAFKA_UNREACHABLE.
        """
        latest, self._read_to = self._admin.read_latest_values(self._tables_topic, self._read_to)
        self._times.note(latest)
        self._sent_schemas |= {key: value for key, value in latest.items() if len(key) == table_messages.TABLE_ID_SIZE}
        self._add_requests(latest)

    def find_open(self, table: PublishedTable) -> RawTopic | None:
        """The table's raw topic, if it is open with this schema."""
        raw_topic = self._open.get(table.id)
        return raw_topic if raw_topic is not None and raw_topic.table is table else None

    def find_last(self, table: PublishedTable) -> RawTopic | None:
        """The table's raw topic, also if it has been closed."""
        return self._open.get(table.id) or self._closed.get(table.id)

    def open(self, table: PublishedTable) -> RawTopic:
        """The table's raw topic, opened if it is not. CdcError if Kafka or the registry is unreachable or refuses;
        TableError if that concerns this table alone.
        """
        return self.find_open(table) or self.add_open(self.announce(table, self.find_topic(table)))

    def find_topic(self, table: PublishedTable) -> FoundTopic:
        """Create or check the table's raw topic, and find the registry's id. May be called from another thread.
        TableError.
        """
        keyspace, name = table.table.keyspace, table.table.name
        topic = names.raw_topic(self._prefix, keyspace, name)
        partitions, is_new = self._partitions.get(topic, 0), False
        try:
            if not partitions:
                self._check_names(keyspace, name)
                partitions, is_new = self._admin.ensure_raw_topic(topic)
            return FoundTopic(topic, partitions, self._ids.schema_id(f"{topic}-value"), is_new)
        except CdcError as error:
            raise TableError.of(error) from error

    def announce(self, table: PublishedTable, found: FoundTopic) -> RawTopic:
        """Send the table's schema. CdcError KAFKA_UNREACHABLE or KAFKA_REFUSED; TableError if the schema is too
        large.
        """
        since = replace(table.table, altered_at=self._times.since(table))
        key, value = table.id + table.digest, table_messages.to_json(since, self._cluster)
        if self._send_schema(table, key, value):
            self._times.note({key: value})
            log.info("table schema sent", table=table.table.qualified_name, topic=found.name, digest=table.digest.hex())
        return RawTopic(table, found.name, found.partitions, found.schema_id)

    def announce_again(self, table: PublishedTable) -> RawTopic:
        """Send the schema of another state of a table whose raw topic is known. CdcError as `announce`."""
        known = (self._open if table.id in self._open else self._closed)[table.id]
        found = FoundTopic(known.name, known.partitions, known.schema_id, is_new=False)
        announced = self.announce(table, found)
        return self.add_open(announced) if table.id in self._open else self.set_aside(announced)

    def was_published(self, table: PublishedTable) -> bool:
        """Return whether the tables topic has a schema of the table."""
        return any(key.startswith(table.id) for key in self._sent_schemas if len(key) > table_messages.TABLE_ID_SIZE)

    def add_open(self, raw_topic: RawTopic) -> RawTopic:
        """From now on the table's messages go there."""
        self._open[raw_topic.table.id] = raw_topic
        self._partitions[raw_topic.name] = raw_topic.partitions
        self._closed.pop(raw_topic.table.id, None)
        self.opened += 1
        return raw_topic

    def set_aside(self, raw_topic: RawTopic) -> RawTopic:
        """Keep the raw topic of a table that catches up: only `find_last` returns it."""
        self._closed[raw_topic.table.id] = raw_topic
        return raw_topic

    def open_again(self, table_id: bytes) -> None:
        """The table has caught up."""
        self.add_open(self._closed[table_id])

    def close(self, table_id: bytes) -> bool:
        """The table waits; return whether its raw topic was open. It is checked before it is opened again."""
        raw_topic = self._open.pop(table_id, None)
        if raw_topic is None:
            return False
        self._closed[table_id] = raw_topic
        self._partitions.pop(raw_topic.name, None)
        self.opened += 1
        return True

    def tables_of(self, topic: str) -> list[PublishedTable]:
        """The tables whose raw topic this is or was."""
        return [raw_topic.table for raw_topic in (self._closed | self._open).values() if raw_topic.name == topic]

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

    def refresh_partition_counts(self) -> list[tuple[PublishedTable, TableError]]:
        """Find raw partitions that were added, and check the raw topics. Returns the tables whose topic has other
        settings than it must have, or is gone, and the problem of each. CdcError KAFKA_UNREACHABLE.
        """
        counts = self._admin.read_partition_counts()
        problems = self._admin.check_raw_topics({raw_topic.name for raw_topic in self._open.values()})
        for gone in self._partitions.keys() - counts:
            del self._partitions[gone]  # a recreated table creates it again
        for table_id, raw_topic in self._open.items():
            count = counts.get(raw_topic.name, raw_topic.partitions)
            if count != raw_topic.partitions:
                self._sender.refresh_metadata(raw_topic.name)  # its own refresh may come up to a minute later
                log.info("raw topic has more partitions", topic=raw_topic.name, before=raw_topic.partitions, now=count)
                self._partitions[raw_topic.name] = count
                self._open[table_id] = raw_topic._replace(partitions=count)
        return [
            (raw_topic.table, problems[raw_topic.name])
            for raw_topic in self._open.values()
            if raw_topic.name in problems
        ]

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
        """TableError if Kafka cannot have the topics of the table."""
        try:
            names.check_length(names.raw_topic(self._prefix, keyspace, name))
        except MessageError as error:
            raise TableError(
                Code.TOPIC_NAME,
                f"The {error.reason}.",
                f"ALTER TABLE {keyspace}.{name} WITH cdc = false, or drop the table: what the log has of it is then"
                " skipped. A table with a shorter name can be published.",
            ) from error
        opened = [raw_topic.table for raw_topic in list(self._open.values()) if raw_topic.table.id in self.on_node]
        tables = {(table.table.keyspace, table.table.name) for table in opened}
        for collision in names.collisions(self._prefix, tables | {(keyspace, name)}):
            raise TableError(
                Code.TOPIC_NAMES_COLLIDE,
                f"Kafka cannot distinguish the topic {collision.topic} of {collision.owner} from"
                f" {collision.other_topic} of {collision.other_owner}.",
                f"ALTER TABLE {keyspace}.{name} WITH cdc = false, or drop the table: what the log has of it is then"
                " skipped. Or do so with the other one and delete its topics. A kafka.topic_prefix without '_' avoids"
                " some of these.",
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
            for refusal in self._sender.take_refusals(self._tables_topic):
                raise self._schema_problem(table, refusal)
            if monotonic() > deadline:
                raise CdcError(
                    Code.KAFKA_UNREACHABLE,
                    f"Kafka does not acknowledge the schema of {table.table.qualified_name} in {self._tables_topic}.",
                    "Check the brokers' logs and min.insync.replicas; the publisher retries.",
                )
        self._sent_schemas[key] = value
        return True

    def _schema_problem(self, table: PublishedTable, refusal: Refusal) -> CdcError:
        """One table has a large schema. Any other refusal of the tables topic concerns every table."""
        if not refusal.is_too_large:
            return refusal.error
        return TableError(
            Code.MESSAGE_TOO_LARGE,
            f"The schema of {table.table.qualified_name} is too large for {self._tables_topic}.",
            f"Raise max.message.bytes of {self._tables_topic} (kafka-configs.sh).",
        )
