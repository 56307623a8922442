"""The rows of a state move to another change topic: all of them, at one raw offset, before anything later is folded.

Each visible row ends in the topic that it leaves (`d`) and begins in the next one (`r`). Rows that are sent again, to a
topic that was deleted and created again (materializer.rows.topic_ids), move to their own topic and only begin.

A move that exceeds a chunk's budget is done in parts. Each part is a transaction at the same offset, and the
continuation says what has moved. The first part decides the target, whatever the plans of later batches say.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from materializer.fold.clock import RunClock
from materializer.fold.repairs import Repairs
from materializer.fold.result import ChunkResult
from materializer.fold.schema_change import read_shown, shown_table_id
from materializer.fold.table import ChunkContext, TableFold
from materializer.rows.budget import Budget, BudgetSpentError
from materializer.rows.catalog import SchemaId
from materializer.rows.continuation import TopicMoveContinuation, read_continuation
from materializer.rows.keys import CLOCK, EXPIRY, NOW, RESEND, timer_key
from materializer.rows.overlay import Overlay
from materializer.rows.published import read_published
from materializer.rows.topic_ids import must_resend, record_topic_ids

if TYPE_CHECKING:
    from cdc_common.messages.topics import Topic
    from materializer.fold.schema_in_force import SchemaInForce
    from materializer.records import Change
    from materializer.rows.catalog import TableCatalog
    from materializer.rows.settings import FoldSettings
    from stream_runtime.state.reader import StateReader


def fold_move(state: StateReader, offset: int, in_force: SchemaInForce, settings: FoldSettings) -> ChunkResult | None:
    """The next part of the move that must be made, or finished, before the raw message `offset` is folded; None if
    there is none. No record is folded with it.

    A schema that is in force, and is not the newest, has its topic already: what the driver plans for it is of no use.
    """
    catalog = in_force.catalog
    continuation = read_continuation(state)
    if continuation is not None:
        if not isinstance(continuation, TopicMoveContinuation):
            return None
        return _Part(state, settings).move(continuation, catalog)
    target = _target(state, in_force)
    if target is None:
        return None
    table_id, topic = target
    part = _Part(state, settings)
    if part.is_within_second:
        return part.finish_second(catalog)
    schema = SchemaId(table_id, catalog.newest[table_id])
    return part.begin(TopicMoveContinuation(b"", schema, b"", part.second, offset, topic), catalog)


def _target(state: StateReader, in_force: SchemaInForce) -> tuple[bytes, Topic] | None:
    """The table whose rows must move or be sent again, and the topic that they go to; None if they stay."""
    published = read_published(state)
    table_id = shown_table_id(state) if published else None
    if table_id is None or table_id not in published:
        return None
    recorded = published[table_id].topic
    may_leave = in_force.is_newest or in_force.has_advanced
    topic = in_force.catalog.newest_topic(table_id) if may_leave else _as_planned(recorded, in_force.catalog)
    stays = topic is None or (recorded.name == topic.name and not must_resend(state))
    return None if topic is None or stays else (table_id, topic)


def _as_planned(topic: Topic, catalog: TableCatalog) -> Topic:
    """The topic with the number of partitions that it has now."""
    return topic._replace(partitions=catalog.partitions.get(topic.name, topic.partitions))


class _Part:
    """One part. It does not advance the clock."""

    def __init__(self, state: StateReader, settings: FoldSettings) -> None:
        self._state = state
        self._overlay = Overlay(state)
        self._changes: list[Change] = []
        clock_ms = _time(state, CLOCK)
        clock = RunClock(clock_ms, clock_ms)
        self._chunk = ChunkContext(self._overlay, clock, Budget(settings), self._changes, Repairs(self._overlay))
        self.second = clock_ms // 1000

    @property
    def is_within_second(self) -> bool:
        """Whether the part before has ended within a second: some of what expires then has not."""
        timers = timer_key(EXPIRY, self.second, b""), timer_key(EXPIRY, self.second + 1, b"")
        return next(self._state.scan(*timers), None) is not None

    def finish_second(self, catalog: TableCatalog) -> ChunkResult:
        """Emit what else expires at that second, in the topic that is left."""
        schema = read_shown(self._state)[0].schema
        table = TableFold(self._chunk, catalog.as_of(schema), schema.table_id)
        with suppress(BudgetSpentError):
            table.expire_at(self.second)
        return self._result(table)

    def begin(self, continuation: TopicMoveContinuation, catalog: TableCatalog) -> ChunkResult:
        """The first part of a move, which also sends again what was to be sent again."""
        if must_resend(self._state):
            self._overlay.put(RESEND, None)
        return self.move(continuation, catalog)

    def move(self, continuation: TopicMoveContinuation, catalog: TableCatalog) -> ChunkResult:
        schema = continuation.schema
        table = TableFold(self._chunk, catalog.as_of(schema), schema.table_id, leaves_topic=True)
        try:
            table.resume(continuation)
        except BudgetSpentError:
            return self._result(table)
        record_topic_ids(self._overlay, catalog.topic_ids)
        return self._result(table)._replace(moved_to=continuation.topic.name)

    def _result(self, table: TableFold) -> ChunkResult:
        table.encode_rows()
        published = read_published(self._state)
        return ChunkResult(self._overlay.writes, self._changes, _time(self._state, NOW), published=published)


def _time(state: StateReader, key: bytes) -> int:
    return int.from_bytes(state.get(key) or b"", "big")
