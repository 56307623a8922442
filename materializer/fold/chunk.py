"""The fold: (state, raw messages, now) -> (state, changes), a pure function without Spark, Kafka or RocksDB.

The records of a chunk are decoded, put in write order and folded message by message into an overlay over the committed
state. A message that changes what `SELECT` shows adds one RowChange for each row that it changes. A chunk that exceeds
its budget is folded with fewer records; a single record that exceeds it is folded in parts (materializer.fold.part).
All records of a chunk are folded under one schema (materializer.fold.schema_in_force).
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from materializer.fold.chunk_fold import ChunkFold
from materializer.fold.native_fold import Incomplete, in_order
from materializer.fold.part import BeforeSchema, Part, before_schema
from materializer.fold.reorder import ReorderBuffer, release_in_write_order
from materializer.fold.row_updates import AloneError, read_row_updates
from materializer.fold.schema_in_force import SchemaAdvanceError, SchemaInForce
from materializer.fold.topic_move import fold_move
from materializer.rows.budget import BudgetSpentError
from materializer.rows.keys import CONTINUATION
from materializer.rows.settings import DEFAULT_FOLD_SETTINGS, FoldSettings
from materializer.rows.topic_ids import check_topic_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdc_native.fold.updates import PlainUpdate
    from materializer.fold.clock import RunClock
    from materializer.fold.result import ChunkResult
    from materializer.fold.table import TableFold
    from materializer.fold.table_runs import TableRun
    from materializer.records import RawRecord, RowUpdate
    from materializer.rows.catalog import SchemaId, TableCatalog
    from stream_runtime.state.reader import StateReader


def fold_chunk(
    reader: StateReader,
    records: Sequence[RawRecord],
    catalog: TableCatalog,
    settings: FoldSettings = DEFAULT_FOLD_SETTINGS,
) -> ChunkResult:
    """Fold at least one record of one raw partition, in the order of their offsets.

    It folds all records or, if they exceed the budget, as many as `left` says; maybe only a part of the first one.
    CdcError with SCHEMA_UNKNOWN, TOO_MANY_DEAD_LETTERS, STATE_DAMAGED, STATE_FORMAT, NOT_SUPPORTED or
    CHANGE_TOPIC_RECREATED: then nothing of the chunk may be used.
    """
    check_topic_ids(reader, catalog.topic_ids)
    in_force = SchemaInForce(reader, catalog)
    while True:
        try:
            return _fold_in_force(reader, records, in_force, settings)
        except SchemaAdvanceError as found:  # of the first record
            part = _advance(reader, records[0], in_force, found.schema, settings)
            if part is not None:
                return part._replace(left=len(records))


def _advance(
    reader: StateReader, record: RawRecord, in_force: SchemaInForce, schema: SchemaId, settings: FoldSettings
) -> ChunkResult | None:
    """Put the next schema into force, on the way to the one of a record. The next part of what must be done for that,
    without the record; None if the record can be folded under its schema.
    """
    part = before_schema(reader, record, in_force, settings)
    if part is not None:
        return part
    step = in_force.step_to(schema)
    in_force.advance(step)
    if step == schema:
        return None
    moved = fold_move(reader, record.offset, in_force, settings)
    return BeforeSchema(reader, record, in_force, settings).fold() if moved is None else moved


def _fold_in_force(
    reader: StateReader, records: Sequence[RawRecord], in_force: SchemaInForce, settings: FoldSettings
) -> ChunkResult:
    """Fold records under the schema in force. SchemaAdvanceError if the first one is folded under a newer one."""
    moved = fold_move(reader, records[0].offset, in_force, settings)
    if moved is not None:
        return moved._replace(left=len(records))
    has_continuation = reader.get(CONTINUATION) is not None
    count = 0 if has_continuation else len(records)
    while count:
        try:
            chunk = WholeChunk(reader, records[:count], in_force.catalog, settings, in_force)
        except AloneError as found:  # a chunk of its own
            count = found.index
            continue
        except SchemaAdvanceError as found:
            if not found.index:
                raise
            count = found.index
            continue
        try:
            return chunk.fold()._replace(left=len(records) - count)
        except BudgetSpentError:  # nearly in write order: about as many records as updates fit
            count = min(count // 2, max(chunk.budget.applied, 1))
    part = Part(reader, records[0], in_force.catalog, settings, None if has_continuation else in_force)
    result = part.fold()
    return result._replace(left=result.left + len(records) - 1)


class WholeChunk(ChunkFold):
    """All records, or BudgetSpentError. The updates are folded in write order, and those of a mutation together."""

    def _fold_updates(self, table: TableFold, run: TableRun, clock: RunClock) -> None:
        table.load_expiring()
        if not self._fold_natively(table, run, clock):
            self._fold_in_python(table, run, clock)
        table.expire_rest()

    def _fold_natively(self, table: TableFold, run: TableRun, clock: RunClock) -> bool:
        """Fold with the native core, and in Python what it leaves; False if it must take nothing: nothing is done."""
        if self._plan is None or len(run.arrivals) < len(self._arrivals) or not self._is_buffer_empty():
            return False
        repaired = self._repairs.open_partitions
        incomplete = Incomplete(self._incomplete.partitions, repaired, self._snapshots.was_running)
        native = table.open_native(self._plan, incomplete)
        if native is None:
            return False
        updates = native.updates(run.arrivals, self._catalog, self._incomplete.dead_letter)
        in_order(updates, clock)
        self._incomplete.resolve(updates)
        native.prefetch(updates, table.expiring_keys())
        table.fold_natively(native, updates, self._to_python)
        self._native_count = native.count
        return True

    def _is_buffer_empty(self) -> bool:
        return ReorderBuffer(self._overlay, self._catalog, self._incomplete.dead_letter).is_empty

    def _to_python(self, update: PlainUpdate) -> RowUpdate:
        """The update as the Python code folds it."""
        found: RowUpdate | None = update.python
        if found is None:
            [found] = read_row_updates([update], self._catalog, self._incomplete.dead_letter)
        return found

    def _fold_in_python(self, table: TableFold, run: TableRun, clock: RunClock) -> None:
        arrived = read_row_updates(run.arrivals, self._catalog, self._incomplete.dead_letter)
        buffer = ReorderBuffer(self._overlay, self._catalog, self._incomplete.dead_letter)
        updates = release_in_write_order(buffer, clock, arrived, self.budget)
        self._incomplete.resolve(update for _, update in updates)
        table.prefetch(update for _, update in updates)
        for (second, *_), mutation in groupby(updates, key=_mutation):
            table.apply_mutation([update for _, update in mutation], second)


def _mutation(timed: tuple[int, RowUpdate]) -> tuple[int, bytes, tuple[object, ...]]:
    """The same for two updates if they are of one mutation and one Cassandra partition."""
    second, update = timed
    return second, update.partition_key, update.order[1:4]
