"""Where a table's updates go: its raw topic, checked; the registry id; its schema, acknowledged in the tables topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import structlog

from cdc_messages import tables as table_messages
from cdc_messages import topics as names
from cdc_messages.raw import RAW_SCHEMA
from cdc_program.errors import CdcError, Code
from publisher import state_files
from publisher.inflight import Mark

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, Protocol

    from publisher.kafka import Sender, Topics
    from publisher.schema import PublishedTable

    class Registry(Protocol):
        """What cdc_program.registry has."""

        def register(self, subject: str, schema: dict[str, Any]) -> int: ...


log = structlog.get_logger(__name__)


class Channel(NamedTuple):
    """A table that updates can be sent to."""

    table: PublishedTable
    topic: str
    partitions: int
    schema_id: int


class RegistryIds:
    """The ids of the raw schema by subject, remembered in `registry.json`: with it the registry may be down."""

    def __init__(self, file: Path, registry: Registry) -> None:
        self._file = file
        self._registry = registry
        stored = state_files.read(file) or {}
        self._ids: dict[str, int] = stored.get("ids", {}) if stored.get("schema") == RAW_SCHEMA else {}

    def get(self, subject: str) -> int:
        """The id, registering the schema if this has not been done; CdcError REGISTRY_UNREACHABLE or _REFUSED."""
        if subject not in self._ids:
            self._ids[subject] = self._registry.register(subject, RAW_SCHEMA)
            state_files.write(self._file, {"schema": RAW_SCHEMA, "ids": self._ids})
        return self._ids[subject]


class Channels:
    """The channels that are open. A table whose schema changes is opened again."""

    def __init__(self, prefix: str, topics: Topics, sender: Sender, ids: RegistryIds) -> None:
        self._prefix = prefix
        self._topics = topics
        self._sender = sender
        self._ids = ids
        self._tables_topic = names.tables_topic(prefix)
        self._open: dict[bytes, Channel] = {}
        self._sent_schemas: set[bytes] = set()

    def start(self) -> None:
        """Make or check the topic of table schemas, and see which it has."""
        self._topics.ensure_tables(self._tables_topic)
        self._sent_schemas = self._topics.read_keys(self._tables_topic)

    def all(self) -> list[Channel]:
        return list(self._open.values())

    def get(self, table: PublishedTable) -> Channel:
        """The table's channel, opening it if needed: this may wait for Kafka and the registry."""
        channel = self._open.get(table.table.id.bytes)
        if channel is None or channel.table is not table:
            channel = self._open_channel(table)
            self._open[table.table.id.bytes] = channel
        return channel

    def _open_channel(self, table: PublishedTable) -> Channel:
        keyspace, name = table.table.keyspace, table.table.name
        self._check_names(keyspace, name)
        topic = names.raw_topic(self._prefix, keyspace, name)
        partitions = self._topics.ensure_raw(topic)
        schema_id = self._ids.get(f"{topic}-value")
        self._send_schema(table)
        log.info("table published", table=table.table.qualified_name, topic=topic, partitions=partitions)
        return Channel(table, topic, partitions, schema_id)

    def _check_names(self, keyspace: str, name: str) -> None:
        tables = {(channel.table.table.keyspace, channel.table.table.name) for channel in self._open.values()}
        for collision in names.collisions(self._prefix, tables | {(keyspace, name)}):
            raise CdcError(
                Code.TOPIC_NAMES_COLLIDE,
                f"Kafka cannot tell the topic {collision.topic} of {collision.owner} from {collision.other_topic} of"
                f" {collision.other_owner}.",
                "Set cdc = false on one of the two, or rename it; kafka.topic_prefix without '_' avoids some of these.",
            )

    def _send_schema(self, table: PublishedTable) -> None:
        """Send the table's schema unless the topic has it, and wait until it is acknowledged."""
        key = table_messages.message_key(table.table)
        if key in self._sent_schemas:
            return
        waiting = Mark(0, 0, outstanding=1)
        while not self._sender.send(self._tables_topic, key, table_messages.to_json(table.table), waiting):
            self._sender.poll(0.1)
        while waiting.outstanding:
            self._sender.poll(0.1)
        self._sent_schemas.add(key)
