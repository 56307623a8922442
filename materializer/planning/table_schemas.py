"""The schemas of all tables, from the messages of the tables topic."""

from __future__ import annotations

from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING

import structlog

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.errors import MessageError
from cdc_common.messages.tables import (
    DIGEST_SIZE,
    TABLE_ID_SIZE,
    cluster_name,
    from_json,
    mark_from_json,
    request_from_json,
    request_key,
    requested_table,
)
from cdc_common.messages.topics import tables_topic
from materializer.planning.plan import TableSchema
from stream_runtime.kafka import TopicReader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdc_common.settings import KafkaSettings

TableName = tuple[str, str]

_logger = structlog.get_logger(__name__)


class TableSchemas:
    """The schemas by (keyspace, table), each list from the oldest to the newest.

    Schemas are ordered by the time of the statements that made them, then by their first appearance; of the messages
    with one digest the one of the latest statement counts. So neither a publisher whose node has an old schema nor the
    topic's compaction makes an older schema the newest.

    requests: the times (µs) of the requests for snapshots, by table id (cdc_common.messages.tables).
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._schemas: dict[TableName, dict[tuple[bytes, bytes], tuple[int, TableSchema]]] = {}
        self._clusters: dict[TableName, set[str]] = {}
        self._needs_snapshot_since: dict[bytes, int] = {}
        self.requests: dict[bytes, int] = {}

    def add(self, messages: Iterable[tuple[bytes, bytes]]) -> None:
        """Add messages of the topic, (key, value). Then log which tables need a snapshot, or none any more.

        CdcError if a message cannot be read.
        """
        before = dict(self._needs_snapshot_since)
        for key, value in messages:
            if len(key) == TABLE_ID_SIZE:
                self._add_needs_snapshot(key, value)
            elif (requested := requested_table(key)) is not None:
                self._add_request(requested, value)
            else:
                self._add_schema(key, value)
        for table_id, since in self._needs_snapshot_since.items():
            if before.get(table_id, 0) != since:
                self._log_mark(table_id, since)

    def for_table(self, table: TableName) -> tuple[TableSchema, ...]:
        """Return the table's schemas. CdcError(TOPIC_PREFIX_TAKEN) if two Cassandra clusters have published a table of
        this name.
        """
        if len(clusters := self._clusters.get(table, set())) > 1:
            names = " and ".join(sorted(clusters))
            raise CdcError(
                Code.TOPIC_PREFIX_TAKEN,
                f"The Cassandra clusters {names} publish to the raw topic of {'.'.join(table)}.",
                "Start again with a kafka.topic_prefix of its own for each Cassandra cluster: their rows are mixed.",
            )
        known = self._schemas.get(table, {}).values()
        return tuple(schema for _, schema in sorted(known, key=itemgetter(0)))

    def _add_schema(self, key: bytes, value: bytes) -> None:
        schema = TableSchema(key[:TABLE_ID_SIZE], key[TABLE_ID_SIZE:], value)
        try:
            table = from_json(value)
        except MessageError as error:
            raise self._unreadable(key, error.reason) from error
        if len(schema.digest) != DIGEST_SIZE or table.id.bytes != schema.table_id:
            raise self._unreadable(key, "its key does not belong to the table in its value")
        schemas = self._schemas.setdefault((table.keyspace, table.name), {})
        if cluster := cluster_name(value):
            self._clusters.setdefault((table.keyspace, table.name), set()).add(cluster)
        known = schemas.get((schema.table_id, schema.digest))
        if known is None or known[0] <= table.altered_at:
            schemas[schema.table_id, schema.digest] = (table.altered_at, schema)  # a known schema keeps its place

    def _add_needs_snapshot(self, table_id: bytes, value: bytes) -> None:
        try:
            self._needs_snapshot_since[table_id] = mark_from_json(value)
        except MessageError as error:
            raise self._unreadable(table_id, error.reason) from error

    def _log_mark(self, table_id: bytes, since: int) -> None:
        if not since:
            _logger.info("table needs no snapshot any more", table=self._name_of(table_id))
            return
        _logger.warning(
            "table needs a snapshot",
            code=Code.NEEDS_SNAPSHOT.text,
            table=self._name_of(table_id),
            since=datetime.fromtimestamp(since / 1e6, UTC).isoformat(),
            problem="Its change topic lacks rows: those that were written while its cdc was off, or before a TRUNCATE "
            "in which a node took no part.",
            fix="Take a snapshot of it (cassandra-publisher snapshot), or rebuild the table in the CDC datacenter.",
        )

    def _add_request(self, table_id: bytes, value: bytes) -> None:
        try:
            self.requests[table_id] = request_from_json(value)
        except MessageError as error:
            raise self._unreadable(request_key(table_id), error.reason) from error

    def _name_of(self, table_id: bytes) -> str:
        names = [
            name for name, schemas in self._schemas.items() if any(known_id == table_id for known_id, _ in schemas)
        ]
        return ".".join(names[0]) if names else table_id.hex()

    def _unreadable(self, key: bytes, reason: str) -> CdcError:
        return CdcError(
            Code.RAW_MESSAGE_UNREADABLE,
            f"A message of {tables_topic(self._prefix)} with the key {key.hex()} cannot be read: {reason}.",
            "Run a materializer of the publisher's version or a later one. No other program may write to that topic.",
        )


def read_table_schemas(settings: KafkaSettings) -> TableSchemas:
    """Everything that the tables topic holds now."""
    schemas = TableSchemas(settings.topic_prefix)
    schemas.add(TopicReader(settings, tables_topic(settings.topic_prefix)).read_to_end())
    return schemas
