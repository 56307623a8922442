"""One Cassandra partition brought from one schema to another, with the changes that this makes in its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.deletion import NO_LIVENESS, NO_TIMESTAMP, DeletionTime, RowDeletion
from cassandra_storage.formats.rows.dropped_columns import without_dropped
from cassandra_storage.formats.rows.row import Row
from cdc_common.messages.changes import RowChange, Source
from materializer.fold.schema_version import change_steps, move_steps, resend_steps
from materializer.rows.budget import BudgetSpentError, row_size
from materializer.rows.continuation import (
    RowsEndContinuation,
    SchemaContinuation,
    TopicMoveContinuation,
    store_continuation,
)
from materializer.rows.expiry import NowInSeconds, deletion_second
from materializer.rows.keys import RANGES_SECTION, ROWS_END, ROWS_SECTION
from materializer.rows.overlay import StoredRow
from materializer.rows.partition_state import PartitionFacts, PartitionState
from materializer.rows.range_tombstones import decode_range

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cassandra_storage.formats.rows.clustering import Clustering
    from cdc_common.messages.changes import Cause, ColumnImage, Op, RowImage
    from cdc_common.messages.topics import Topic
    from materializer.fold.schema_version import SchemaVersion
    from materializer.fold.tools import TableTools
    from materializer.rows.overlay import RowValue

_NO_HOST = bytes(16)


class PartitionSchemaChange:
    """Brings the rows of one Cassandra partition from one schema to another. Call one method, once.

    Both methods raise BudgetSpentError where the budget ends, with a stored continuation.
    """

    def __init__(
        self,
        tools: TableTools,
        old: SchemaVersion,
        new: SchemaVersion,
        continuation: SchemaContinuation | RowsEndContinuation | TopicMoveContinuation,
        left: Topic | None = None,
    ) -> None:
        """`left`: the topic that the rows leave, if they move to another one."""
        self._tools = tools
        self._old = old
        self._new = new
        self._continuation = continuation
        self._left = left
        self._visible = 0 if isinstance(continuation, RowsEndContinuation) else continuation.visible
        self._partition_key = continuation.partition_key
        self._second = continuation.now
        self._now = NowInSeconds(continuation.now, continuation.now)
        self._gone = DeletionTime(NO_TIMESTAMP, continuation.now)  # deletes nothing; its second starts gc_grace
        self._source = self._cause()
        # Of one table both codecs read the same rows, and rows are written under the new schema.
        codec = new.codec if old.id.table_id == new.id.table_id else old.codec
        self._state = PartitionState(tools.overlay, codec, tools.timers, continuation.partition_key)
        static = self._state.static
        self._statics = {} if static is None else old.imager.columns(static, self._second)

    def alter_rows(self) -> None:
        """Show the same rows under another schema of the same table, or in another topic."""
        kept = None if self._state.static is None else without_dropped(self._state.static, self._new.table)
        statics = {} if kept is None else self._new.imager.columns(kept, self._second)
        for key, value in self._entries(ROWS_SECTION):
            self._alter_row(key, self._old.codec.decode(value, is_static=False), statics)
        if self._old.table.clustering:
            self._alter_facts(kept, statics)

    def delete_rows(self) -> None:
        """Delete all rows: the table was truncated, dropped, or dropped and created again.

        A row keeps its row_sequence if the change topic is the same and the new table has the row's key in the same
        place. If not, the floor rises above it.
        """
        is_same_topic = self._old.topic == self._new.topic
        for key, value in self._entries(RANGES_SECTION):
            section = key[len(self._state.prefix) :]
            if section[:1] == RANGES_SECTION:
                assert isinstance(value, bytes)
                self._tools.timers.update_purge_timer(key, deletion_second(decode_range(b"", value).deletion), None)
                self._tools.overlay.put(key, None)
            elif section[:1] == ROWS_SECTION:
                stored = self._old.codec.decode(value, is_static=False)
                stays = is_same_topic and self._new_key(stored.row.clustering) == section[1:]
                self._delete_row(key, stored, stays=stays)
        self._delete_facts(stays=is_same_topic)

    def _entries(self, first: bytes) -> Iterator[tuple[bytes, RowValue]]:
        """Yield the stored entries from a section on, or from the continuation on, to the last row."""
        prefix, overlay, budget = self._state.prefix, self._tools.overlay, self._tools.budget
        for key, value in overlay.scan_rows(prefix + (self._continuation.at or first), prefix + ROWS_END):
            if budget.is_spent:
                self._store_continuation(key[len(prefix) :])
                raise BudgetSpentError
            budget.spend(len(value) if isinstance(value, bytes) else row_size(value.row))
            yield key, value

    def _store_continuation(self, at: bytes) -> None:
        continuation = self._continuation._replace(at=at)
        if not isinstance(continuation, RowsEndContinuation):
            continuation = continuation._replace(visible=self._visible)
        store_continuation(self._tools.overlay, continuation)

    def _alter_row(self, key: bytes, stored: StoredRow, statics: Mapping[str, ColumnImage]) -> None:
        row = without_dropped(stored.row, self._new.table)
        before = self._old.image(stored.row, self._second, self._statics)
        after = self._new.image(row, self._second, statics)
        if after is not None:
            self._visible += 1
        sequence = self._emit(stored.row.clustering, before, after, stored.row_sequence)
        if row.is_empty:
            row = row._replace(deletion=RowDeletion(self._gone))
        self._state.put_row(key, stored, StoredRow(row, sequence), self._now)

    def _alter_facts(self, kept: Row | None, statics: Mapping[str, ColumnImage]) -> None:
        """Store the static row that is left, and emit the change of the row that stands for the partition."""
        facts, visible = self._state.facts, self._visible
        alone = None if visible else statics or None
        start = facts.static_sequence or self._tools.floor.value
        sequence = self._emit(None, self._alone(), alone, start)
        facts = facts._replace(visible_rows=visible)
        if sequence != start:
            facts = facts._replace(static_sequence=sequence)
        if self._state.static is not None:
            self._state.put_static(kept, self._now)
            if self._state.static is None and facts.deletion.is_live:
                facts = facts._replace(deletion=self._gone)
        self._state.put_facts(facts)

    def _delete_row(self, key: bytes, stored: StoredRow, *, stays: bool) -> None:
        before = self._old.image(stored.row, self._second, self._statics)
        sequence = self._emit(stored.row.clustering, before, None, stored.row_sequence)
        if stays:  # with a tombstone that deletes nothing and is purged as usual
            row = Row(stored.row.clustering, {}, NO_LIVENESS, RowDeletion(self._gone))
            self._state.put_row(key, stored, StoredRow(row, sequence), self._now)
            self._tools.overlay.put_row(key, StoredRow(row, sequence))  # even an equal row: the new table encodes it
        else:
            self._tools.floor.raise_to(sequence)
            self._state.put_row(key, stored, None, self._now)

    def _new_key(self, clustering: Clustering) -> bytes | None:
        """The row's place in the new table; None if that table's types cannot have its key."""
        try:
            return self._tools.clustering_key(clustering)
        except FormatError:
            return None

    def _delete_facts(self, *, stays: bool) -> None:
        sequence = self._emit(None, self._alone(), None, self._state.facts.static_sequence)
        self._state.put_static(None, self._now)
        if stays and sequence:
            self._state.put_facts(PartitionFacts(deletion=self._gone, static_sequence=sequence))
        else:
            self._tools.floor.raise_to(sequence)
            self._state.put_facts(PartitionFacts())

    def _alone(self) -> RowImage | None:
        """The row that stood for the partition, if it had only static columns."""
        return None if self._state.facts.visible_rows else self._statics or None

    def _emit(self, clustering: Clustering | None, before: RowImage | None, after: RowImage | None, count: int) -> int:
        """The row_sequence after the changes from one image to the other."""
        steps = change_steps if self._left is None else resend_steps if self._is_resent else move_steps
        for one, other, schema in steps(before, after, self._old, self._new):
            count += 1
            op: Op = "c" if one is None else "d" if other is None else "u"
            change = RowChange(self._partition_key, clustering, op, one, other, count, self._source, schema)
            self._tools.changes.append(change if self._left is None else self._moved(change, self._left))
        return count

    def _moved(self, change: RowChange, left: Topic) -> RowChange:
        """The change as one of a move: `d` in the topic that the row leaves, or `r` in the next one."""
        assert isinstance(self._continuation, TopicMoveContinuation)
        entered = self._continuation.topic
        if self._is_resent:
            return change._replace(op="r", topic=entered)
        if change.op == "d":
            return change._replace(topic=left, source=change.source._replace(file=entered.name))
        return change._replace(op="r", topic=entered, source=change.source._replace(file=left.name))

    @property
    def _is_resent(self) -> bool:
        """Whether the rows are sent again to the topic that they are in."""
        continuation, left = self._continuation, self._left
        return (
            isinstance(continuation, TopicMoveContinuation)
            and left is not None
            and left.name == continuation.topic.name
        )

    def _cause(self) -> Source:
        """Why the rows change."""
        continuation = self._continuation
        if isinstance(continuation, RowsEndContinuation):
            return continuation.source
        if isinstance(continuation, TopicMoveContinuation) and self._left is not None:
            cause: Cause = "resent" if self._is_resent else "moved"
            return Source(continuation.now * 1_000_000, _NO_HOST, "", 0, cause)
        return Source(self._new.table.altered_at, _NO_HOST, "", 0, "schema")
