"""The fold of one table's part of a chunk: writes, expiry, schema changes and purging of Cassandra partitions."""

from __future__ import annotations

from itertools import groupby, islice
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from cassandra_storage.formats.merge.reconciliation import RowMerger
from cdc_common.messages.changes import Source
from cdc_common.messages.repairs import file_name
from materializer.fold.clock import RunClock
from materializer.fold.held import HeldPartition, hold
from materializer.fold.native_fold import Incomplete, NativeFold
from materializer.fold.net_changes import as_row_change, net_changes
from materializer.fold.partition import PartitionFold
from materializer.fold.partition_replacement import PartitionReplacement
from materializer.fold.purge import PartitionPurge
from materializer.fold.repairs import Repairs
from materializer.fold.row_updates import read_row_updates
from materializer.fold.schema_change import SchemaChange
from materializer.fold.tools import Event, TableTools
from materializer.records import Change
from materializer.rows.budget import Budget, BudgetSpentError
from materializer.rows.catalog import SchemaId
from materializer.rows.continuation import (
    RowsEndContinuation,
    SchemaContinuation,
    TopicMoveContinuation,
    delete_continuation,
)
from materializer.rows.expiry import NowInSeconds
from materializer.rows.keys import FACTS_SECTION, ROWS_SECTION, STATIC_SECTION, partition_prefix, split_data_key
from materializer.rows.overlay import Overlay
from materializer.rows.partition_state import PartitionState, SequenceFloor
from materializer.rows.ranges import DeletedRange
from materializer.rows.row_codec import RowCodec
from materializer.rows.row_columns import row_columns
from materializer.rows.row_image import RowImager
from materializer.rows.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cassandra_storage.formats.rows.deletion import DeletionTime
    from cdc_native.fold.plan import Plan
    from cdc_native.fold.updates import PlainUpdate
    from materializer.fold.publishers import PublisherWatermarks
    from materializer.fold.repairs import Repair
    from materializer.records import Arrival, RowUpdate
    from materializer.rows.catalog import TableCatalog
    from materializer.rows.continuation import Continuation
    from materializer.rows.expired_write import ExpiredWrite
    from materializer.rows.settings import FoldSettings

_NO_HOST = bytes(16)


class ChunkContext(NamedTuple):
    """The parts that the tables of a chunk share, and the time of one table. The tables add their changes to `changes`
    and their writes to the overlay.
    """

    # The state as the chunk has changed it so far.
    overlay: Overlay
    # The time of the table's messages.
    clock: RunClock
    # The work that the chunk may still do.
    budget: Budget
    # The chunk's changes, in order.
    changes: list[Change]
    # The repairs in the state.
    repairs: Repairs


class TableFold:
    """The fold of one table's part of a chunk.

    Every method raises BudgetSpentError where the budget ends.
    """

    def __init__(
        self, chunk: ChunkContext, catalog: TableCatalog, table_id: bytes, *, leaves_topic: bool = False
    ) -> None:
        """leaves_topic: as SchemaChange's."""
        self._overlay, self._clock, self._budget, self._changes, self._repairs = chunk
        self._catalog = catalog
        overlay = chunk.overlay
        digest, self._table = catalog.newest_of(table_id)
        keys = catalog.key_encoders(table_id, digest)
        self._timers = Timers(overlay)
        self._tools = TableTools(
            overlay=overlay,
            changes=chunk.changes,
            budget=chunk.budget,
            codec=RowCodec(overlay, catalog, table_id),
            merger=RowMerger(row_columns(self._table), is_counter=self._table.is_counter),
            imager=RowImager(self._table),
            schema=SchemaId(table_id, digest),
            clustering_key=keys.clustering,
            bound_key=keys.bound,
            has_clustering=bool(self._table.clustering),
            timers=self._timers,
            floor=SequenceFloor(overlay),
        )
        self._schema_change = SchemaChange(self._tools, catalog, leaves_topic=leaves_topic)
        self._partitions: dict[bytes, PartitionState] = {}
        self._native: NativeFold | None = None

    def open_native(self, plan: Plan | None, incomplete: Incomplete) -> NativeFold | None:
        """Let the native core fold plain rows; None if the Python code must fold all rows of the table now."""
        if plan is not None and plan.digest == self._tools.schema.digest and self._schema_change.is_done:
            self._native = NativeFold(plan, self._tools, self._partitions, self._table, incomplete)
        return self._native

    def load_expiring(self) -> None:
        """Load the timers of everything that expires by the end of the chunk, for `apply_mutation` and `expire_rest`.

        Without this, call `expire_at` for each second.
        """
        self._timers.load_expiring(self._clock.start_second, self._clock.second, self._budget)

    def prefetch(self, updates: Iterable[RowUpdate]) -> None:
        """Read at once, in order, what the updates will read (except the rows of fan-outs, which are scanned)."""
        keys = set()
        for update in updates:
            prefix = partition_prefix(update.partition_key)
            keys |= {prefix + FACTS_SECTION, prefix + STATIC_SECTION}
            if update.row is not None:
                keys.add(prefix + ROWS_SECTION + self._tools.clustering_key(update.row.clustering))
        self._overlay.prefetch(keys)

    def fold_natively(
        self, native: NativeFold, updates: list[PlainUpdate], to_python: Callable[[PlainUpdate], RowUpdate]
    ) -> None:
        """Fold updates in write order with the native core, and in Python what it stops at."""
        at, why = native.fold(updates, 0)
        while why != "end":
            update, ranged = updates[at], None
            if why == "expires":
                self.expire_until(update.partition_key, update.second)
            elif why == "ranges":
                ranged = self._ranged_deletion(update)
            else:
                mutation, is_begun = native.mutation(updates, at)
                self.apply_mutation([to_python(one) for one in mutation], update.second, is_begun=is_begun)
                at += len(mutation)
            at, why = native.fold(updates, at, ranged)

    def _ranged_deletion(self, update: PlainUpdate) -> DeletionTime:
        """The deletion of the range tombstone that covers the row of an update; LIVE if there is none."""
        assert update.key is not None
        clustering_key = update.key[len(partition_prefix(update.partition_key) + ROWS_SECTION) :]
        return self._state(update.partition_key, update.second).ranged_deletion(clustering_key)

    def apply_mutation(self, mutation: Sequence[RowUpdate], second: int, *, is_begun: bool = False) -> None:
        """Merge a mutation's updates of one Cassandra partition at a second, and emit their net changes.

        Before that, the partition follows a changed schema, and what expires in it by then is emitted. is_begun: that
        is done, and maybe some other updates of the mutation are merged.
        """
        partition_key = mutation[0].partition_key
        if not is_begun:
            self._budget.check()
            self.expire_until(partition_key, second)
        self._hold(mutation)
        state = self._state(partition_key, second)
        changes, start = self._changes, len(self._changes)
        expired: list[ExpiredWrite] = []
        for update in mutation:
            expired += self._merge(update, Event(partition_key, update.source, NowInSeconds(second, second)))
        if len(mutation) > 1 and len(changes) > start + 1:
            changes[start:], sequences = net_changes([as_row_change(change) for change in changes[start:]])
            state.put_row_sequences(
                {
                    None if clustering is None else self._tools.clustering_key(clustering): sequence
                    for clustering, sequence in sequences.items()
                }
            )
        self._expire_writes(partition_key, expired, second)
        self._budget.applied += len(mutation)

    def apply_record(self, update: RowUpdate, second: int) -> None:
        """Merge the update of the chunk's only record: if it is cut, its continuation completes the record."""
        self._budget.check()
        self._hold([update])
        event = Event(update.partition_key, update.source, NowInSeconds(second, second), completes_record=True)
        self._expire_writes(update.partition_key, self._merge(update, event), second)

    @property
    def schema(self) -> SchemaId:
        """The newest one, which the rows are shown under."""
        return self._tools.schema

    def hold_images(self, images: Iterable[Arrival]) -> None:
        """Hold the images that hosts have sent for open repairs; what cannot be read makes a repair fail."""
        for image in images:
            for repair in self._repairs.open_of(image.record.key):
                if image.message.file == file_name(repair.id):
                    self._hold_image(image, repair)

    def _hold_image(self, image: Arrival, repair: Repair) -> None:
        for update in read_row_updates([image], self._catalog, lambda *_: self._repairs.fail(repair)):
            hold(self._overlay, repair, update, self._tools.clustering_key)

    def replace_partition(self, repair: Repair, source: Source, second: int) -> None:
        """Replace a Cassandra partition by what a repair holds. It is the chunk's only record, which it completes."""
        event = Event(repair.partition_key, source, NowInSeconds(second, second), completes_record=True)
        self._replacement(event, repair.id).replace()

    def _replacement(self, event: Event, repair_id: UUID) -> PartitionReplacement:
        repair = self._repairs.get(event.partition_key, repair_id)
        assert repair is not None  # kept until it is over
        held = HeldPartition(self._tools, self._catalog, repair)
        return PartitionReplacement(self._tools, self._state(event.partition_key, event.now.before), event, held)

    def _hold(self, updates: Iterable[RowUpdate]) -> None:
        """Hold writes of a Cassandra partition with an open repair, too."""
        for update in updates:
            if update.is_snapshot:
                self._repairs.note_snapshot(update.partition_key, update.source.host)
                continue
            for repair in self._repairs.open_of(update.partition_key):
                hold(self._overlay, repair, update, self._tools.clustering_key)

    def prepare_partition(self, partition_key: bytes, second: int) -> None:
        """Let a Cassandra partition follow a changed schema before anything is merged into it at a second."""
        self._state(partition_key, second)

    def _merge(self, update: RowUpdate, event: Event) -> Sequence[ExpiredWrite]:
        """The result: what `_expire_writes` must end with the mutation."""
        fold = self._partition_fold(event)
        if update.row is not None:
            expired = fold.merge_row(update.row)
            return () if expired is None else (expired,)
        if update.static is not None:
            fold.merge_static(update.static)
        elif update.range is not None:
            first, last = self._tools.bound_key(update.range.start), self._tools.bound_key(update.range.end)
            fold.delete_range(DeletedRange(first, last, update.range.deletion))
        else:
            fold.delete_partition(update.deletion)
        return ()

    def _expire_writes(self, partition_key: bytes, writes: Sequence[ExpiredWrite], now: int) -> None:
        """Emit the expiry of what a mutation's rows show although it has expired, second by second."""
        for second in sorted({second for write in writes for second in write.parts.seconds}):
            event = Event(partition_key, _expiry_source(second), NowInSeconds(now, now))
            self._partition_fold(event).expire_writes(writes, second)

    def resume(self, continuation: Continuation) -> None:
        """Finish what an earlier chunk has begun."""
        if isinstance(continuation, SchemaContinuation):
            self._schema_change.resume(continuation)
        elif isinstance(continuation, RowsEndContinuation):
            self._schema_change.end_rows(continuation)
        elif isinstance(continuation, TopicMoveContinuation):
            self._schema_change.move_rows(continuation)
        else:
            event = Event(
                continuation.partition_key, continuation.source, continuation.now, continuation.completes_record
            )
            if continuation.fan_out.kind == "repair":
                self._replacement(event, UUID(bytes=continuation.fan_out.repair)).resume(continuation)
            else:
                self._partition_fold(event).resume(continuation)
        delete_continuation(self._overlay)

    def end_rows(self, source: Source, second: int) -> None:
        """Delete all rows of the table, in no Cassandra partition's time but at a second."""
        self._partitions.clear()
        self._schema_change.end_rows(RowsEndContinuation(b"", self._tools.schema, b"", second, source))

    def expire_rest(self) -> None:
        """Emit whatever expires by the end of the chunk and is not emitted yet."""
        for partition_key in self._timers.expiring_partitions():
            self.expire_until(partition_key, self._clock.second)

    def expiring_keys(self) -> list[bytes]:
        """The data keys of what expires by the end of the chunk, by the stored timers."""
        return self._timers.loaded_until(self._clock.second)

    def expire_at(self, second: int) -> None:
        """Emit what expires at a second in any Cassandra partition, after everything that expires before it."""
        data_keys = self._timers.expiring_at(second)
        for partition_key, keys in groupby(data_keys, key=lambda data_key: split_data_key(data_key)[0]):
            self._budget.check()
            self.prepare_partition(partition_key, second - 1)
            while some := list(islice(keys, max(1, self._budget.rows))):
                self._timers.delete_expiry_timers(second, some)
                self._expire_keys(partition_key, second, some)
                self._budget.check()

    def next_expiry_second(self, first: int) -> int | None:
        """The next second, from `first` to the chunk's, at which something expires."""
        return self._timers.next_expiry_second(first, self._clock.second)

    def close(self, watermarks: PublisherWatermarks, settings: FoldSettings, *, may_purge: bool) -> int | None:
        """Republish more rows under a changed schema, and purge if `may_purge`, after the records of the chunk. Both
        share a new budget.

        Returns the second that all publishers must pass before the next purge, if that purge waits only for them.
        """
        self._budget.renew()
        try:
            self._schema_change.migrate_some(self._clock.second)
            return self._purge(watermarks, settings) if may_purge else None
        except BudgetSpentError:
            return None

    def migrate_rows(self, second: int) -> None:
        """Republish all rows that are not shown under the schema yet."""
        while not self._schema_change.is_done:
            self._schema_change.migrate_some(second)

    def _purge(self, watermarks: PublisherWatermarks, settings: FoldSettings) -> int | None:
        if self._clock.second == self._clock.start_second:
            return None
        kept_for = self._table.gc_grace_seconds + settings.purge_margin_seconds
        self._purge_before(watermarks.lowest_second() - kept_for, settings.purged_per_chunk)
        dead_since = self._timers.oldest_dead_second(self._clock.second - kept_for)
        return None if dead_since is None else dead_since + kept_for

    def _purge_before(self, before: int, most: int) -> None:
        purges: dict[bytes, PartitionPurge] = {}
        try:
            for timer, data_key in self._timers.purgeable(before, most):
                self._budget.check()
                partition_key, _ = split_data_key(data_key)
                state = self._state(partition_key, self._clock.second)
                purge = PartitionPurge(self._tools, state, before, self._clock.second)
                purges.setdefault(partition_key, purge).purge_entry(data_key)
                self._overlay.put(timer, None)
        finally:
            for purge in purges.values():
                purge.purge_facts()

    def encode_rows(self) -> None:
        """The last step: encode the changed rows, each once."""
        if self._native is not None and self._native.has_written:
            self._tools.codec.store_newest_number()
        self._tools.codec.encode_rows()

    def expire_until(self, partition_key: bytes, until: int) -> None:
        """Emit what expires in a Cassandra partition, second by second."""
        for second, data_keys in self._timers.pop_expired(partition_key, until):
            self._budget.check()
            self._expire_keys(partition_key, second, data_keys)

    def _expire_keys(self, partition_key: bytes, second: int, data_keys: Sequence[bytes]) -> None:
        if self._native is not None:
            data_keys = self._native.expire_rows(partition_key, second, data_keys)
            if not data_keys:
                return
        event = Event(partition_key, _expiry_source(second), NowInSeconds(second - 1, second))
        self._partition_fold(event).expire_rows(data_keys)

    def _partition_fold(self, event: Event) -> PartitionFold:
        state = self._state(event.partition_key, event.now.before)
        return PartitionFold(self._tools, state, event, self._native)

    def _state(self, partition_key: bytes, second: int) -> PartitionState:
        """The state of a Cassandra partition, which follows a changed schema first, as seen at a second."""
        state = self._partitions.get(partition_key)
        if state is None:
            self._schema_change.migrate_partition(partition_key, second)
            state = PartitionState(self._overlay, self._tools.codec, self._timers, partition_key)
            self._partitions[partition_key] = state
        return state


def _expiry_source(second: int) -> Source:
    return Source(second * 1_000_000, _NO_HOST, "", 0, "expiry")
