"""Where a table's updates go: its raw topic, checked; the registry id; its schema, acknowledged in the tables topic."""

from __future__ import annotations

from hashlib import sha256
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import structlog

from cdc_messages import tables as table_messages
from cdc_messages import topics as names
from cdc_messages.raw import RAW_SCHEMA
from cdc_program.errors import CdcError, Code
from publisher import state_files
from publisher.inflight import Mark
from publisher.schema import PublishedTable

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Any, Protocol

    from publisher.kafka import Sender, Topics

    class Registry(Protocol):
        """Of cdc_program.registry.RegistryClient; CdcError REGISTRY_UNREACHABLE or REGISTRY_REFUSED."""

        def register(self, subject: str, schema: dict[str, Any]) -> int: ...

        def lookup(self, subject: str, schema: dict[str, Any]) -> int | None: ...


SCHEMA_SECONDS = 10.0

log = structlog.get_logger(__name__)


class Channel(NamedTuple):
    """A table that updates can be sent to."""

    table: PublishedTable
    topic: str
    partitions: int
    schema_id: int


def send_everywhere(sender: Sender, channel: Channel, value: bytes, mark: Mark, wait: Callable[[], None]) -> None:
    """Send what has no key to each partition of the channel; `mark` waits for all, `wait` is called at a full queue."""
    mark.outstanding += channel.partitions
    for partition in range(channel.partitions):
        while not sender.send_to_partition(channel.topic, partition, value, mark):
            wait()


class RegistryIds:
    """The ids of the raw schema by subject, remembered in a file: with it the registry at `url` may be down.

    `connect` is called only when an id is not known yet.
    """

    def __init__(self, file: Path, url: str, connect: Callable[[], AbstractContextManager[Registry]]) -> None:
        self._file = file
        self._connect = connect
        self._source = {"schema": RAW_SCHEMA, "registry": sha256(url.encode()).hexdigest()}  # a URL may hold secrets
        stored = state_files.read(file) or {}
        is_ours = {name: stored.get(name) for name in self._source} == self._source
        self._ids: dict[str, int] = stored["ids"] if is_ours else {}

    def check(self) -> None:
        """CdcError REGISTRY_UNREACHABLE if no id is known and there is nobody to ask for one."""
        if not self._ids:
            with self._connect() as registry:
                registry.lookup("RawMessage", RAW_SCHEMA)

    def get(self, subject: str) -> int:
        """The id, registering the schema if this has not been done; CdcError REGISTRY_UNREACHABLE or _REFUSED."""
        if subject not in self._ids:
            with self._connect() as registry:
                self._ids[subject] = registry.register(subject, RAW_SCHEMA)
            state_files.write(self._file, {**self._source, "ids": self._ids})
        return self._ids[subject]


class Channels:
    """The channels that are open. A table whose schema changes is opened again."""

    def __init__(self, prefix: str, cluster: str, topics: Topics, sender: Sender, ids: RegistryIds) -> None:
        self._prefix = prefix
        self._cluster = cluster
        self._topics = topics
        self._sender = sender
        self._ids = ids
        self._tables_topic = names.tables_topic(prefix)
        self._open: dict[bytes, Channel] = {}
        self._partitions: dict[str, int] = {}
        self._sent_schemas: dict[bytes, bytes] = {}

    def start(self) -> None:
        """Make or check the topic of table schemas, and see what it has: CdcError if Kafka is away or refuses."""
        self._topics.check_reachable()
        self._topics.ensure_tables(self._tables_topic)
        self._sent_schemas = self._topics.read_latest(self._tables_topic)

    def opened(self, table: PublishedTable) -> Channel | None:
        """The table's channel, if it is open with this schema."""
        channel = self._open.get(table.id)
        return channel if channel is not None and channel.table is table else None

    def get(self, table: PublishedTable) -> Channel:
        """The table's channel, opening it if needed: CdcError if Kafka or the registry is away or refuses."""
        channel = self.opened(table)
        if channel is None:
            channel = self._open[table.id] = self._open_channel(table)
        return channel

    def recount(self) -> None:
        """See whether raw topics have got more partitions, and are as they must be; CdcError KAFKA_UNREACHABLE or
        TOPIC_SETTINGS.
        """
        counts = self._topics.partition_counts()
        self._topics.check_raw({channel.topic for channel in self._open.values()})  # a table made anew has its old one
        for gone in self._partitions.keys() - counts:
            del self._partitions[gone]  # for a table made anew it is made anew
        for table_id, channel in self._open.items():
            count = counts.get(channel.topic, channel.partitions)
            if count != channel.partitions:
                self._sender.learn(channel.topic)  # it asks by itself once a minute, too, but maybe later than we
                log.info("raw topic has more partitions", topic=channel.topic, before=channel.partitions, now=count)
                self._partitions[channel.topic] = count
                self._open[table_id] = channel._replace(partitions=count)

    def _open_channel(self, table: PublishedTable) -> Channel:
        topic = names.raw_topic(self._prefix, table.table.keyspace, table.table.name)
        if topic not in self._partitions:
            self._check_names(table.table.keyspace, table.table.name)
            self._partitions[topic] = self._topics.ensure_raw(topic)
        schema_id = self._ids.get(f"{topic}-value")
        if self._send(table, table.id + table.digest, table_messages.to_json(table.table, self._cluster)):
            log.info("table schema sent", table=table.table.qualified_name, topic=topic, digest=table.digest.hex())
        if table.needs_snapshot_since:
            self._send(table, table.id, table_messages.mark_to_json(table.needs_snapshot_since))
        return Channel(table, topic, self._partitions[topic], schema_id)

    def _check_names(self, keyspace: str, name: str) -> None:
        tables = {(each.table.table.keyspace, each.table.table.name) for each in self._open.values()}
        for collision in names.collisions(self._prefix, tables | {(keyspace, name)}):
            raise CdcError(
                Code.TOPIC_NAMES_COLLIDE,
                f"Kafka cannot tell the topic {collision.topic} of {collision.owner} from {collision.other_topic} of"
                f" {collision.other_owner}.",
                "Set cdc = false on one of the two, or rename it; kafka.topic_prefix without '_' avoids some of these.",
            )

    def _send(self, table: PublishedTable, key: bytes, value: bytes) -> bool:
        """Send a message of the tables topic and wait until it is acknowledged; False if the topic has it already."""
        if self._sent_schemas.get(key) == value:
            return False
        waiting = Mark(0, 0, outstanding=1)
        deadline = monotonic() + SCHEMA_SECONDS
        is_queued = False
        while waiting.outstanding:
            is_queued = is_queued or self._sender.send(self._tables_topic, key, value, waiting)
            self._sender.poll(0.05)
            if monotonic() > deadline:
                raise CdcError(
                    Code.KAFKA_UNREACHABLE,
                    f"Kafka does not acknowledge the schema of {table.table.qualified_name} in {self._tables_topic}.",
                    "See the brokers' logs and min.insync.replicas; it is tried again.",
                )
        self._sent_schemas[key] = value
        return True
