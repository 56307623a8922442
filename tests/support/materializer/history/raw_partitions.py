"""The partitions of a raw topic with their unread records and their states, folded in any parts, and resharded."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from cdc_common.messages.raw import decode
from cdc_common.messages.topics import partition_for
from materializer.commands.reshard.redistribute import TICK_HOST, Times, is_settled, make_tick, read_facts
from materializer.fold.chunk import fold_chunk
from materializer.rows.catalog import SchemaId
from materializer.rows.published import read_published
from materializer.rows.settings import FoldSettings
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.redistribution import redistribute_states

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdc_common.messages.changes import RowChange
    from materializer.fold.result import ChunkResult
    from materializer.records import RawRecord
    from materializer.rows.catalog import TableCatalog

ENDLESS = 5000  # chunks: far more than any history needs


class RawPartition:
    def __init__(self) -> None:
        self.state = MemoryState()
        self.unread: list[RawRecord] = []
        self.is_in_record = False  # a part of the first unread record's work is done


class RawPartitions:
    """`append` and `fold`; the changes of every chunk come out of the method that folds it."""

    def __init__(self, count: int) -> None:
        self.all = [RawPartition() for _ in range(count)]
        self.settings = FoldSettings(purge_margin_seconds=0, forgotten_publishers=frozenset({TICK_HOST}))

    def restart(self, reorder_ms: int, max_changes: int) -> None:
        self.settings = self.settings._replace(reorder_ms=reorder_ms, max_changes=max_changes)

    def append(self, record: RawRecord) -> None:
        """A record goes to its key's raw partition; a heartbeat, which has no key, to each."""
        for raw in self.all if not record.key else (self.all[partition_for(record.key, len(self.all))],):
            raw.unread.append(record)

    def fold(self, catalog: TableCatalog, records: int, parts: int) -> list[RowChange]:
        """Fold up to `records` unread records of each raw partition, in at most `parts` chunks."""
        changes: list[RowChange] = []
        for raw in self.all:
            for _ in range(min(parts, ENDLESS)):
                found = raw.unread[:records]
                if not found:
                    break
                changes += self._fold_chunk(raw, found, catalog).changes
            assert parts < ENDLESS or not raw.unread, "the fold goes on without an end"
        return changes

    def is_settled(self) -> bool:
        return all(is_settled(raw.state) for raw in self.all)

    def reshard(self, count: int, catalog: TableCatalog, now_ms: int) -> tuple[list[RowChange], int]:
        """Reshard as the command does: each state is settled at one time, redistributed, and then gets the unread
        records. Return the changes, and the time of the states.
        """
        changes = [change for raw in self.all for change in self._finish_record(raw, catalog)]
        known = [read_facts(state.state) for state in self.all]
        reorder_ms = self.settings.reorder_ms
        now_ms = max(now_ms, *(max(facts.times.now_ms, facts.times.clock_ms + reorder_ms) for facts in known))
        order = [SchemaId(*key) for key in catalog.schemas]
        schema = max((state.schema for state in known if state.schema), key=order.index, default=None)
        for raw, facts in zip(self.all, known, strict=True):
            if schema is not None and facts.schema is not None:
                changes += self._settle(raw, make_tick(schema, now_ms), catalog)
        after = RawPartitions(count)
        states = redistribute_states([raw.state for raw in self.all], count, Times(now_ms, now_ms - reorder_ms))
        for target, state in zip(after.all, states, strict=True):
            target.state = state
        for record in heapq.merge(*(raw.unread for raw in self.all), key=lambda record: record.timestamp_ms):
            if decode(record.value).kind != "heartbeat":
                after.append(record)
        self.all = after.all
        return changes, now_ms

    def topics(self) -> set[str]:
        """The change topics that the states publish to."""
        return {entry.topic.name for raw in self.all for entry in read_published(raw.state).values()}

    def _fold_chunk(self, of: RawPartition, records: Sequence[RawRecord], catalog: TableCatalog) -> ChunkResult:
        result = with_topics(fold_chunk(of.state, records, catalog, self.settings), catalog)
        assert result.writes or not result.changes, "changes without a commit"
        assert result.writes or result.left < len(records), "a chunk that does nothing"
        of.state.apply(result.writes)
        of.unread = of.unread[len(records) - result.left :]
        of.is_in_record = result.left == len(records)
        return result

    def _finish_record(self, of: RawPartition, catalog: TableCatalog) -> list[RowChange]:
        changes: list[RowChange] = []
        while of.is_in_record:
            changes += self._fold_chunk(of, of.unread[:1], catalog).changes
        return changes

    def _settle(self, of: RawPartition, tick: RawRecord, catalog: TableCatalog) -> list[RowChange]:
        unread, changes = of.unread, []
        for _ in range(ENDLESS):
            of.unread = [tick]
            while of.unread:
                changes += self._fold_chunk(of, of.unread, catalog).changes
            if is_settled(of.state):
                of.unread = unread
                return changes
        raise AssertionError("a state that never settles")


def with_topics(result: ChunkResult, catalog: TableCatalog) -> ChunkResult:
    """The changes, each with the topic that it is sent to."""
    table_ids = {digest: table_id for table_id, digest in catalog.schemas}
    changes = [
        change if change.topic else change._replace(topic=result.published[table_ids[change.schema]].topic)
        for change in result.changes
    ]
    return result._replace(changes=changes)
