"""What a chunk does to the partitions of one table: writes, expiry, changes of the schema, purging."""

from __future__ import annotations

from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.byte_comparable import bound_encoder, clustering_encoder
from cassandra_storage.merge import RowMerger
from cdc_messages.changes import RowChange, Source
from materializer.fold.net_changes import net_changes
from materializer.fold.partition import Event, PartitionFold, TableTools
from materializer.fold.purge import PartitionPurge
from materializer.fold.schema_change import SchemaChange, Stores
from materializer.rows.budget import Budget, CutShortError
from materializer.rows.catalog import SchemaId
from materializer.rows.continuation import SchemaMove, put_unfinished
from materializer.rows.expiry import Moment
from materializer.rows.keys import (
    FACTS_SECTION,
    ROWS_SECTION,
    STATIC_SECTION,
    partition_prefix,
    split_data_key,
)
from materializer.rows.partition_state import PartitionState, RowCodec, SequenceFloor
from materializer.rows.ranges import DeletedRange
from materializer.rows.row_image import RowImager
from materializer.rows.timers import Queues

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cassandra_storage.schema import ColumnMetadata, TableMetadata
    from materializer.fold.clock import Clock
    from materializer.fold.publishers import Hosts
    from materializer.records import RowUpdate
    from materializer.rows.catalog import TableCatalog
    from materializer.rows.continuation import Unfinished
    from materializer.rows.overlay import Overlay
    from materializer.rows.settings import FoldRules

_NO_HOST = bytes(16)


class Work(NamedTuple):
    """Where changes go, and how much may be done.

    is_stepwise: what expires is asked for second by second (`expire_at`), not taken into memory in advance.
    """

    changes: list[RowChange]
    budget: Budget
    is_stepwise: bool


class ChunkFold:
    """The fold of one chunk; its changes are in `changes`, what it writes in the overlay.

    Everything ends the chunk where the budget does: OverBudgetError or CutShortError. is_record: what is applied is
    the chunk's only record (Fanout).
    """

    def __init__(self, overlay: Overlay, catalog: TableCatalog, table_id: bytes, clock: Clock, work: Work) -> None:
        self.is_record = False
        self._overlay = overlay
        self._clock = clock
        self._changes, self._budget, is_stepwise = work
        digest, self._table = catalog.newest_of(table_id)
        schema = SchemaId(table_id, digest)
        clustering_key = clustering_encoder(self._table.clustering)
        last = clock.start_second - 1 if is_stepwise else clock.second
        queues, floor = Queues(overlay, clock.start_second, last, self._budget), SequenceFloor(overlay)
        self._tools = TableTools(
            overlay=overlay,
            changes=self._changes,
            budget=self._budget,
            codec=RowCodec(overlay, catalog, table_id),
            merger=RowMerger(_columns_by_name(self._table), is_counter=self._table.is_counter),
            imager=RowImager(self._table),
            schema=schema,
            clustering_key=clustering_key,
            bound_key=bound_encoder(self._table.clustering),
            has_clustering=bool(self._table.clustering),
            queues=queues,
            floor=floor,
        )
        stores = Stores(overlay, queues, floor, self._changes, self._budget)
        self._schema_change = SchemaChange(stores, catalog, schema, clustering_key)
        self._partitions: dict[bytes, PartitionState] = {}

    def prefetch(self, updates: Iterable[RowUpdate]) -> None:
        """One ordered read for all that the updates will look at (fan-outs scan by themselves)."""
        keys = set()
        for update in updates:
            prefix = partition_prefix(update.partition_key)
            keys |= {prefix + FACTS_SECTION, prefix + STATIC_SECTION}
            if update.row is not None:
                keys.add(prefix + ROWS_SECTION + self._tools.clustering_key(update.row.clustering))
        self._overlay.prefetch(keys)

    def apply(self, mutation: Sequence[RowUpdate], second: int) -> None:
        """Merge a mutation's messages to one partition at a second and emit what they change, after what a changed
        schema changes in it, and what has expired in it till then.
        """
        self._budget.check()
        partition_key = mutation[0].partition_key
        self._expire(partition_key, second)
        state = self._state(partition_key, second)
        changes, start = self._changes, len(self._changes)
        for update in mutation:
            self._merge(update, second)
        if len(mutation) > 1 and len(changes) > start + 1:
            changes[start:], sequences = net_changes(changes[start:])
            state.renumber(
                {
                    None if clustering is None else self._tools.clustering_key(clustering): sequence
                    for clustering, sequence in sequences.items()
                }
            )
        self._budget.applied += len(mutation)

    def prepare(self, partition_key: bytes, second: int) -> None:
        """Do what has to be done in a partition before anything is merged at a second."""
        self._state(partition_key, second)

    def _merge(self, update: RowUpdate, second: int) -> None:
        fold = self._fold(Event(update.partition_key, update.source, Moment(second, second), self.is_record))
        if update.row is not None:
            fold.row(update.row)
        elif update.static is not None:
            fold.static(update.static)
        elif update.range is not None:
            first, last = self._tools.bound_key(update.range.start), self._tools.bound_key(update.range.end)
            fold.range(DeletedRange(first, last, update.range.deletion))
        else:
            fold.partition(update.deletion)

    def resume(self, unfinished: Unfinished) -> None:
        """Go on with what an earlier chunk has not finished."""
        if isinstance(unfinished, SchemaMove):
            self._schema_change.resume(unfinished)
        else:
            event = Event(unfinished.partition_key, unfinished.source, unfinished.moment, unfinished.is_record)
            self._fold(event).resume(unfinished)
        put_unfinished(self._overlay, None)

    def expire(self) -> None:
        """Emit what else has expired by the end of the chunk."""
        for partition_key in self._tools.queues.expiring_partitions():
            self._expire(partition_key, self._clock.second)

    def expire_at(self, second: int) -> None:
        """Emit what expires at a second, after all that expired before it, in any partition."""
        due = self._tools.queues.expiring_at(second)
        for partition_key, data_keys in groupby(due, key=lambda data_key: split_data_key(data_key)[0]):
            self._budget.check()
            self.prepare(partition_key, second - 1)
            while some := list(islice(data_keys, max(1, self._budget.rows))):
                self._tools.queues.take(second, some)
                self._expire_keys(partition_key, second, some)
                self._budget.check()

    def close(self, hosts: Hosts, rules: FoldRules) -> int | None:
        """Beyond the records, which are done, and with a budget of its own: follow a changed schema in rows that
        nothing was written to, and purge what may go. The second until which what is next has to wait for a publisher,
        if it does not wait for time.
        """
        self._budget.renew(can_cut=True)
        try:
            self._schema_change.sweep(self._clock.second)
            return self._purge(hosts, rules)
        except CutShortError:
            return None

    def _purge(self, hosts: Hosts, rules: FoldRules) -> int | None:
        if self._clock.second == self._clock.start_second:
            return None
        kept_for = self._table.gc_grace_seconds + rules.purge_margin_seconds
        self._purge_before(hosts.purge_time() - kept_for, rules.purged_per_chunk)
        dead_since = self._tools.queues.dead_before(self._clock.second - kept_for)
        return None if dead_since is None else dead_since + kept_for

    def _purge_before(self, before: int, most: int) -> None:
        purges: dict[bytes, PartitionPurge] = {}
        try:
            for entry, data_key in self._tools.queues.purgeable(before, most):
                self._budget.check()
                partition_key, _ = split_data_key(data_key)
                state = self._state(partition_key, self._clock.second)
                purge = PartitionPurge(self._tools, state, before, self._clock.second)
                purges.setdefault(partition_key, purge).purge(data_key)
                self._overlay.put(entry, None)
        finally:
            for purge in purges.values():
                purge.finish()

    def next_expiry(self, first: int) -> int | None:
        """The next second from `first` to the chunk's at which something expires."""
        return self._tools.queues.next_expiry(first, self._clock.second)

    def encode_rows(self) -> None:
        """The last step: what was changed becomes bytes, once for all the changes of a row."""
        self._tools.codec.encode_pending()

    def _expire(self, partition_key: bytes, until: int) -> None:
        """Emit what expires in a partition, second by second, as if each had been met on time."""
        for second, data_keys in self._tools.queues.expiring(partition_key, until):
            self._budget.check()
            self._expire_keys(partition_key, second, data_keys)

    def _expire_keys(self, partition_key: bytes, second: int, data_keys: Sequence[bytes]) -> None:
        source = Source(second * 1_000_000, _NO_HOST, "", 0, "expiry")
        self._fold(Event(partition_key, source, Moment(second - 1, second))).expiry(data_keys)

    def _fold(self, event: Event) -> PartitionFold:
        return PartitionFold(self._tools, self._state(event.partition_key, event.moment.before), event)

    def _state(self, partition_key: bytes, second: int) -> PartitionState:
        """The partition's state, first looked at as it was at a second."""
        state = self._partitions.get(partition_key)
        if state is None:
            self._schema_change.reach(partition_key, second)
            state = PartitionState(self._overlay, self._tools.codec, self._tools.queues, partition_key)
            self._partitions[partition_key] = state
        return state


def _columns_by_name(table: TableMetadata) -> dict[str, ColumnMetadata]:
    """All columns that a stored row may hold: those dropped since, too."""
    dropped = (dropped.column for dropped in table.dropped_columns.values())
    return {column.name: column for column in chain(dropped, table.static_columns, table.regular_columns)}
