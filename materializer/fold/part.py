"""One record that is too much for one chunk, folded in parts: first what is due before it, then its own update.

A part ends where its budget ends and is complete: the stored clock says up to when all is done, the stored timers say
what remains, and a change that is cut is stored as a continuation. The record counts as folded with the last part. A
mutation that comes in several messages is folded message by message here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.messages import raw
from cdc_common.messages.changes import Source
from cdc_common.messages.errors import MessageError
from cdc_common.messages.repairs import decode_step, file_name
from materializer.fold.chunk_fold import ChunkFold
from materializer.fold.clock import RunClock
from materializer.fold.reorder import ReorderBuffer, has_buffered
from materializer.fold.repairs import is_repair_step
from materializer.fold.row_updates import read_row_updates
from materializer.fold.truncations import is_truncation, read_truncations
from materializer.records import UnreadableError
from materializer.rows.budget import BudgetSpentError
from materializer.rows.continuation import FanOutContinuation, RowsEndContinuation, read_continuation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdc_common.messages.changes import Cause
    from cdc_common.messages.raw import RawMessage
    from materializer.fold.arrivals import AnyArrival
    from materializer.fold.result import ChunkResult
    from materializer.fold.schema_in_force import SchemaInForce
    from materializer.fold.table import TableFold
    from materializer.fold.table_runs import TableRun
    from materializer.records import Arrival, RawRecord
    from materializer.rows.catalog import TableCatalog
    from materializer.rows.continuation import Continuation
    from materializer.rows.settings import FoldSettings
    from stream_runtime.state.reader import StateReader


class Part(ChunkFold):
    """One part. The record is left in its result until the last part."""

    _may_be_native = False
    _is_alone = True

    def __init__(
        self,
        reader: StateReader,
        record: RawRecord,
        catalog: TableCatalog,
        settings: FoldSettings,
        in_force: SchemaInForce | None = None,
    ) -> None:
        if raw.is_truncation(record.value):
            settings = settings._replace(reorder_ms=0)  # nothing is buffered across the end of all rows
        super().__init__(reader, [record], catalog, settings, in_force)
        self._reached_ms = self._clock.start_ms

    def _fold_tables(self) -> None:
        continuation = read_continuation(self._overlay)
        try:
            if continuation is not None:
                self._resume(continuation)
            else:
                super()._fold_tables()
        except BudgetSpentError:
            pass
        if self._table is not None:
            self._table.encode_rows()

    def _resume(self, continuation: Continuation) -> None:
        """Resume under the schema under which the change began, even if there is a newer one."""
        schema = continuation.schema
        clock = RunClock(self._clock.start_ms, self._clock.clock_ms)
        self._open_table(schema.table_id, self._catalog.as_of(schema), clock).resume(continuation)
        is_rows_end = isinstance(continuation, RowsEndContinuation)
        if is_rows_end or (isinstance(continuation, FanOutContinuation) and continuation.completes_record):
            self._finish_records()

    def _fold_updates(self, table: TableFold, run: TableRun, clock: RunClock) -> None:
        self._catch_up(table, clock)
        self._fold_record(table, run, clock)

    def _catch_up(self, table: TableFold, clock: RunClock) -> None:
        """Fold what is due before the record, in the order of time; in each second, what expires before the writes."""
        buffer = self._buffer()
        first_ms = 0
        while True:
            arrival = next(buffer.arrived_between(first_ms, clock.clock_ms), None)
            expiry = table.next_expiry_second(self._reached_ms // 1000)
            if arrival is None and expiry is None:
                return
            release = None if arrival is None else max(arrival[0], clock.start_ms) // 1000
            second = min(due for due in (release, expiry) if due is not None)
            self.budget.check()
            self._reached_ms = max(self._reached_ms, second * 1000)
            table.expire_at(second)
            if second == release:
                last_ms = min(second * 1000 + 999, clock.clock_ms)
                self._release_buffered(table, buffer, (first_ms, last_ms), second)
                first_ms = last_ms + 1

    def _release_buffered(self, table: TableFold, buffer: ReorderBuffer, span: tuple[int, int], second: int) -> None:
        """Fold the buffered writes that arrived in a span of time, each after the earlier ones of its key."""
        for _, partition_key, limit in buffer.arrived_between(*span):
            table.prepare_partition(partition_key, second)
            released = buffer.release(partition_key, limit)
            while True:
                self.budget.check()  # a write that is released must be folded
                update = next(released, None)
                if update is None:
                    break
                self._incomplete.resolve([update])
                table.apply_mutation([update], second)

    def _fold_record(self, table: TableFold, run: TableRun, clock: RunClock) -> None:
        for arrival in filter(is_truncation, run.arrivals):
            self._end_rows(table, arrival.message, arrival.arrival_ms, clock.second)
        for arrival in filter(is_repair_step, run.arrivals):
            self._apply_repair_step(table, arrival, clock.second)
        for update in read_row_updates(run.arrivals, self._catalog, self._incomplete.dead_letter):
            if update.is_snapshot or update.arrival_ms <= clock.clock_ms:
                second = clock.second if update.is_snapshot else max(update.arrival_ms, clock.start_ms) // 1000
                table.prepare_partition(update.partition_key, second)
                self.budget.check()
                self._incomplete.resolve([update])
                table.apply_record(update, second)
            else:
                self._buffer().add(update)

    def _end_rows(self, table: TableFold, message: RawMessage, arrival_ms: int, second: int) -> None:
        """Delete all rows, if the state may have some that this TRUNCATE or DROP ends."""
        table.migrate_rows(second)  # the schema is older than the end
        self._repairs.fail_all()
        is_first = self._truncations.apply(message, arrival_ms, self._watermarks.awaited_hosts())
        cause: Cause = "drop" if message.kind == "drop" else "truncate"
        if is_first and (cause == "truncate" or self._settings.ends_dropped):
            table.end_rows(Source(message.truncation_epoch * 1000, message.host_id, "", 0, cause), second)

    def _apply_repair_step(self, table: TableFold, arrival: Arrival, second: int) -> None:
        """Replace the Cassandra partition, if this is the last host's end of its repair."""
        record, message, arrival_ms = arrival
        try:
            step = decode_step(message.update)
        except MessageError as error:
            self._incomplete.dead_letter(record, UnreadableError(error.reason))
            return
        table.prepare_partition(record.key, second)
        self.budget.check()
        truncated = read_truncations(self._overlay)
        # Images that were left out may have rows that are not gone.
        is_heard = truncated is None or not (truncated.waits or truncated.lost)
        schema = table.schema.digest
        repair = self._repairs.apply_step(step, message.host_id, record.key, arrival_ms, schema, is_heard=is_heard)
        if repair is None:
            return
        source = Source(message.clock, message.host_id, file_name(repair.id), 0, "repair")
        table.replace_partition(repair, source, second)

    def _buffer(self) -> ReorderBuffer:
        return ReorderBuffer(self._overlay, self._catalog, self._incomplete.dead_letter)

    def _finish_records(self) -> None:
        """The record is folded. What follows has a budget of its own."""
        self.budget.renew()
        super()._finish_records()

    def _store_times(self) -> None:
        if self._are_records_folded:
            self._clock.store()
            self._watermarks.store()
        else:
            self._clock.store_progress(self._reached_ms)


class BeforeSchema(Part):
    """A part of what is done under the schema in force before a record puts the next one into force.

    What waits in the reorder buffer is folded, whatever its time: it arrived before. Then all rows are brought to the
    schema, so that no row skips one.
    """

    def __init__(self, reader: StateReader, record: RawRecord, in_force: SchemaInForce, settings: FoldSettings) -> None:
        super().__init__(reader, record, in_force.catalog, settings._replace(reorder_ms=0))
        assert in_force.schema is not None
        self._schema = in_force.schema

    def _decode(self, records: Sequence[RawRecord]) -> list[AnyArrival]:  # noqa: ARG002 - it is folded later
        return []

    def _fold_tables(self) -> None:
        last_ms = self._buffer().last_arrival_ms
        clock = RunClock(self._clock.start_ms, max(self._clock.start_ms, last_ms or 0))
        table = self._open_table(self._schema.table_id, self._catalog, clock)
        try:
            if last_ms is not None:
                self._catch_up(table, clock)
            table.migrate_rows(self._reached_ms // 1000)
        except BudgetSpentError:
            pass
        table.encode_rows()


def before_schema(
    reader: StateReader, record: RawRecord, in_force: SchemaInForce, settings: FoldSettings
) -> ChunkResult | None:
    """The next part of what must be done before the record puts a newer schema into force; None if nothing is left. The
    record is not folded with it.
    """
    if in_force.schema is None or (in_force.is_swept and not has_buffered(reader)):
        return None
    return BeforeSchema(reader, record, in_force, settings).fold()
