"""The rows of a state follow a changed schema. change-events.md lists the change messages of each statement.

A dropped column is deleted in every row. A column that is added again shows what is newer than its drop. All rows are
deleted if the table was dropped and created again. The rows are migrated Cassandra partition by Cassandra partition: a
few thousand rows in each chunk, and each partition before its next write. So `SHOWN` stores, by key ranges, the schema
under which the rows were published last. If the changed schema has another change topic (renamed key columns), all rows
have moved there before (materializer.fold.topic_move).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from materializer.fold.partition_schema_change import PartitionSchemaChange
from materializer.fold.schema_version import SchemaVersion, shows_rows_differently
from materializer.rows.budget import BudgetSpentError
from materializer.rows.catalog import SchemaId
from materializer.rows.continuation import SchemaContinuation, TopicMoveContinuation, store_continuation
from materializer.rows.keys import (
    EVOLVED,
    EVOLVED_END,
    PARTITION,
    PARTITION_END,
    SHOWN,
    TOPICS,
    partition_prefix,
    split_data_key,
)
from materializer.rows.published import Published, encode_published, read_published
from materializer.rows.row_codec import RowCodec
from materializer.rows.row_image import RowImager

if TYPE_CHECKING:
    from collections.abc import Sequence

    from materializer.fold.tools import TableTools
    from materializer.rows.catalog import TableCatalog
    from materializer.rows.continuation import RowsEndContinuation
    from materializer.rows.overlay import Overlay
    from stream_runtime.state.reader import StateReader

SWEPT_ROWS = 10_000
_LAST = b"\xff"  # after all keys of a Cassandra partition


class ShownFrom(NamedTuple):
    """A range of rows that are published under one schema. It ends at the next entry's start."""

    # The first key of the range.
    start: bytes
    # The schema.
    schema: SchemaId


def shown_table_id(overlay: Overlay | StateReader) -> bytes | None:
    """The id of the table that the state is of; None for an empty state."""
    shown = read_shown(overlay)
    return shown[0].schema.table_id if shown else None


class SchemaChange:
    """Brings the rows of a state to the tools' schema: the target."""

    def __init__(self, tools: TableTools, catalog: TableCatalog, *, leaves_topic: bool = False) -> None:
        """leaves_topic: the rows are moved to another topic, so that each ends under the schema that it has there."""
        self._leaves_topic = leaves_topic
        self._tools = tools
        self._overlay = tools.overlay
        self._catalog = catalog
        self._versions: dict[SchemaId, SchemaVersion] = {}
        self._stored_published = read_published(tools.overlay)
        self._published = self._with_newest_topic(self._stored_published)
        self._target = self._version(tools.schema)
        self._stored = read_shown(tools.overlay)
        self._shown = self._with_target(self._stored or [ShownFrom(b"", tools.schema)])
        self._store_published(self._published)
        self._store_shown()

    @property
    def is_done(self) -> bool:
        """Whether all rows are shown under the target."""
        return len(self._shown) == 1

    def migrate_partition(self, partition_key: bytes, now: int) -> None:
        """Bring one Cassandra partition to the target, as seen at the second `now`, before it is written to."""
        prefix = partition_prefix(partition_key)
        if len(self._shown) == 1 or self._shown_schema(prefix) == self._target.id:
            return
        self._migrate(partition_key, now)
        self._overlay.put(EVOLVED + prefix, b"".join(self._target.id))

    def resume(self, continuation: SchemaContinuation) -> None:
        """Finish a Cassandra partition that an earlier chunk has begun."""
        self._change_partition(continuation)
        self._overlay.put(EVOLVED + partition_prefix(continuation.partition_key), b"".join(self._target.id))

    def end_rows(self, continuation: RowsEndContinuation) -> None:
        """Delete all rows of the table, as they were shown, from the continuation on. BudgetSpentError where the budget
        ends, with a stored continuation.
        """
        start = partition_prefix(continuation.partition_key) + continuation.at if continuation.at else PARTITION
        while (found := next(self._overlay.scan_rows(start, PARTITION_END), None)) is not None:
            partition_key, section = split_data_key(found[0])
            prefix = partition_prefix(partition_key)
            if partition_key != continuation.partition_key or not continuation.at:
                continuation = continuation._replace(partition_key=partition_key, at=b"")
            if self._tools.budget.is_spent:
                store_continuation(self._overlay, continuation._replace(at=continuation.at or section))
                raise BudgetSpentError
            shown = self._shown_schema(prefix)
            PartitionSchemaChange(self._tools, self._version(shown), self._target, continuation).delete_rows()
            self._tools.budget.spend(0)
            if shown != self._target.id:
                self._overlay.put(EVOLVED + prefix, b"".join(self._target.id))
            start = prefix + _LAST

    def move_rows(self, continuation: TopicMoveContinuation) -> None:
        """Send all rows to another topic, from the continuation on, and end them where they have been.
        BudgetSpentError where the budget ends, with a stored continuation.
        """
        start = partition_prefix(continuation.partition_key) + continuation.at if continuation.at else PARTITION
        while (found := next(self._overlay.scan_rows(start, PARTITION_END), None)) is not None:
            partition_key, _ = split_data_key(found[0])
            if partition_key != continuation.partition_key or not continuation.at:
                self._stop_move_if_spent(continuation)
                continuation = continuation._replace(partition_key=partition_key, at=b"", visible=0)
            self._move_partition(continuation)
            continuation = continuation._replace(at=_LAST)
            start = partition_prefix(partition_key) + _LAST
        for key, _ in self._overlay.scan(EVOLVED, EVOLVED_END):  # of partitions that have no entry any more
            self._stop_move_if_spent(continuation)
            self._tools.budget.spend(0)
            self._overlay.put(key, None)
        self._shown = [ShownFrom(b"", self._target.id)]
        self._store_shown()
        self._store_published({self._target.id.table_id: Published(continuation.topic, continuation.offset)})

    def _move_partition(self, continuation: TopicMoveContinuation) -> None:
        prefix = partition_prefix(continuation.partition_key)
        shown = self._version(self._shown_schema(prefix))
        if shown.id.table_id == self._target.id.table_id:
            left = self._published[shown.id.table_id].topic
            PartitionSchemaChange(self._tools, shown, self._target, continuation, left).alter_rows()
        else:
            PartitionSchemaChange(self._tools, shown, self._target, continuation).delete_rows()
        self._tools.budget.spend(0)
        if self._overlay.get(EVOLVED + prefix) is not None:
            self._overlay.put(EVOLVED + prefix, None)

    def _stop_move_if_spent(self, continuation: TopicMoveContinuation) -> None:
        if self._tools.budget.is_spent:
            store_continuation(self._overlay, continuation)
            raise BudgetSpentError

    def migrate_some(self, now: int) -> None:
        """Bring some more Cassandra partitions to the target, in the order of their keys."""
        budget = self._tools.budget
        enough = budget.rows - SWEPT_ROWS
        try:
            while len(self._shown) > 1 and budget.rows > enough:
                self._migrate_next(now)
        finally:
            self._store_shown()

    def _migrate_next(self, now: int) -> None:
        """Bring the next Cassandra partition to the target. If there is none, that range of keys is done."""
        end = self._shown[2].start if len(self._shown) > 2 else PARTITION_END
        found = next(self._overlay.scan_rows(self._shown[1].start, end), None)
        if found is None:
            if len(self._shown) == 2:
                self._delete_marks()
            del self._shown[1]
            return
        self._tools.budget.check()
        self._tools.budget.spend(0)
        partition_key, _ = split_data_key(found[0])
        prefix = partition_prefix(partition_key)
        self._migrate(partition_key, now)
        if self._overlay.get(EVOLVED + prefix) is not None:
            self._overlay.put(EVOLVED + prefix, None)
        self._shown[1] = self._shown[1]._replace(start=prefix + _LAST)

    def _delete_marks(self) -> None:
        for key, _ in self._overlay.scan(EVOLVED, EVOLVED_END):
            self._tools.budget.check()
            self._tools.budget.spend(0)
            self._overlay.put(key, None)

    def _with_target(self, shown: list[ShownFrom]) -> list[ShownFrom]:
        """The ranges, after a new one of the target if it shows their rows differently."""
        target = self._target
        ranges = [ShownFrom(b"", target.id)]
        for former in shown:
            start = former.start or PARTITION
            stays = self._leaves_topic or shows_rows_differently(self._version(former.schema), target)
            schema = former.schema if stays else target.id
            if schema != ranges[-1].schema:
                ranges.append(ShownFrom(start, schema))
        return ranges

    def _store_shown(self) -> None:
        if self._shown != self._stored:
            entries = [[key_range.start.hex(), *(part.hex() for part in key_range.schema)] for key_range in self._shown]
            self._overlay.put(SHOWN, json.dumps(entries, separators=(",", ":")).encode())
            self._stored = list(self._shown)
        if len(self._shown) == 1:
            table_id = self._target.id.table_id
            self._store_published({key: topic for key, topic in self._published.items() if key == table_id})

    def _with_newest_topic(self, published: dict[bytes, Published]) -> dict[bytes, Published]:
        """The topics with that of the tools' table, whose first chunk this may be."""
        table_id = self._tools.schema.table_id
        topic = self._catalog.newest_topic(table_id)
        return published if topic is None or table_id in published else {**published, table_id: Published(topic)}

    def _store_published(self, published: dict[bytes, Published]) -> None:
        if published != self._stored_published:
            self._overlay.put(TOPICS, encode_published(published))
        self._published = self._stored_published = published

    def _topic_name(self, schema: SchemaId) -> str | None:
        """The name of the topic that changes under the schema go to."""
        planned = self._catalog.topics.get(schema.digest)
        recorded = self._published.get(schema.table_id)
        return planned if planned is None or recorded is None else recorded.topic.name

    def _shown_schema(self, prefix: bytes) -> SchemaId:
        found = shown_schema(self._overlay, self._shown, prefix)
        assert found is not None  # the first range begins before all keys
        return found

    def _version(self, schema: SchemaId) -> SchemaVersion:
        version = self._versions.get(schema)
        if version is None:
            table = self._catalog.schema(*schema)
            codec = RowCodec(self._overlay, self._catalog, schema.table_id)
            topic = self._topic_name(schema)
            version = self._versions[schema] = SchemaVersion(schema, table, codec, RowImager(table), topic)
        return version

    def _migrate(self, partition_key: bytes, now: int) -> None:
        shown = self._shown_schema(partition_prefix(partition_key))
        if shown != self._target.id:
            self._change_partition(SchemaContinuation(partition_key, self._target.id, shown, b"", now))

    def _change_partition(self, continuation: SchemaContinuation) -> None:
        change = PartitionSchemaChange(self._tools, self._version(continuation.shown), self._target, continuation)
        if continuation.shown.table_id == continuation.schema.table_id:
            change.alter_rows()
        else:
            change.delete_rows()


def shown_schema(state: Overlay | StateReader, shown: Sequence[ShownFrom], prefix: bytes) -> SchemaId | None:
    """The schema under which the rows of a Cassandra partition, by its keys' prefix, are shown; None without any."""
    mark = state.get(EVOLVED + prefix)
    if mark is not None:
        return SchemaId(mark[:16], mark[16:])
    return next((key_range.schema for key_range in reversed(shown) if key_range.start <= prefix), None)


def read_shown(overlay: Overlay | StateReader) -> list[ShownFrom]:
    """The key ranges of the state with the schema under which their rows are shown; empty for an empty state."""
    stored = overlay.get(SHOWN)
    entries = [] if stored is None else json.loads(stored)
    return [
        ShownFrom(bytes.fromhex(start), SchemaId(bytes.fromhex(table_id), bytes.fromhex(digest)))
        for start, table_id, digest in entries
    ]
