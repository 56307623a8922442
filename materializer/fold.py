"""The fold: (state, raw messages, now) -> (state, changes), a pure function without Spark, Kafka or RocksDB.

A chunk of one raw partition is decoded, put in write order and folded message by message into an Overlay over the
committed state: each message that changes what `SELECT` would show gives one RowChange for each row that it changes.
"""

from __future__ import annotations

from itertools import chain, groupby
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.byte_comparable import bound_encoder, clustering_encoder
from cassandra_storage.merge import RowMerger
from cdc_messages.changes import RowChange, Source
from materializer.catalog import SchemaId
from materializer.clock import Clock
from materializer.hold import due_updates, forget_held
from materializer.hosts import Hosts
from materializer.images import RowImager
from materializer.lifetimes import Moment
from materializer.net_changes import net_changes
from materializer.overlay import Overlay, StateReader
from materializer.partition_fold import PartitionFold, TableTools
from materializer.partition_state import PartitionState, RowCodec, SequenceFloor
from materializer.purge import PartitionPurge
from materializer.queues import Queues
from materializer.ranges import DeletedRange
from materializer.row_updates import RawRecord, RowUpdate, decode_records, row_updates
from materializer.rules import DEFAULT_RULES, FoldRules
from materializer.schema_change import SchemaChange, Stores, shown_table
from materializer.state_keys import (
    FACTS_SECTION,
    ROWS_SECTION,
    STATIC_SECTION,
    partition_prefix,
    split_data_key,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cassandra_storage.schema import ColumnMetadata, TableMetadata
    from cdc_messages.raw import RawMessage
    from materializer.catalog import TableCatalog

_NO_HOST = bytes(16)


class ChunkResult(NamedTuple):
    """What a chunk makes of the state (None deletes a key), what it emits, in order, the partition's new time, and the
    ids of publishers unheard of. Without writes there are no changes either: the chunk is as good as not there.
    """

    writes: dict[bytes, bytes | None]
    changes: list[RowChange]
    now_ms: int
    silent_hosts: tuple[str, ...] = ()


def fold_chunk(
    reader: StateReader, records: Sequence[RawRecord], catalog: TableCatalog, rules: FoldRules = DEFAULT_RULES
) -> ChunkResult:
    """Fold records of one raw partition (at least one), in the order of their offsets.

    CdcError with SCHEMA_UNKNOWN, RAW_MESSAGE, STATE_DAMAGED, STATE_FORMAT or NOT_SUPPORTED; nothing of the chunk
    may be used then.
    """
    overlay = Overlay(reader)
    clock = Clock(overlay, records, rules.hold_ms)
    hosts = Hosts(overlay, clock, rules)
    messages = decode_records(records)
    for (_, message), arrival_ms in zip(messages, clock.arrivals, strict=True):
        hosts.note(message, arrival_ms)
    changes: list[RowChange] = []
    waiting = None
    for run in _by_table(shown_table(overlay), messages, clock.arrivals, catalog):
        if run.is_made_anew:
            forget_held(overlay)
        fold = _ChunkFold(overlay, catalog, run.table_id, clock)
        updates = due_updates(overlay, catalog, clock, row_updates(run.messages, run.arrivals, catalog))
        fold.prefetch(update for _, update in updates)
        for (second, *_), mutation in groupby(updates, key=_mutation):
            fold.apply([update for _, update in mutation], second)
        fold.expire()
        fold.follow_schema()
        waiting = fold.purge(hosts, rules)
        fold.encode_rows()
        changes += fold.changes
    if overlay.writes or clock.has_moved_by(rules.keep_time_ms) or hosts.must_keep(waiting):
        clock.keep()
        hosts.keep()
    return ChunkResult(overlay.writes, changes, clock.now_ms, hosts.silent())


class _Run(NamedTuple):
    """The messages of one table, with when each came (ms); tables that are made anew under a name have other ids."""

    table_id: bytes
    messages: list[tuple[RawRecord, RawMessage]]
    arrivals: list[int]
    is_made_anew: bool = False


def _by_table(
    current: bytes | None,
    messages: Sequence[tuple[RawRecord, RawMessage]],
    arrivals: Sequence[int],
    catalog: TableCatalog,
) -> list[_Run]:
    """The messages of the table that the state is of, then those of each that was made anew under its name.

    What still comes of a table after the first message of its successor is of rows that its drop has ended.
    """
    runs = [] if current is None else [_Run(current, [], [])]
    for (record, message), arrival_ms in zip(messages, arrivals, strict=True):
        table_id = message.table_id
        if not runs or table_id != runs[-1].table_id:
            catalog.newest_of(table_id)  # an unknown table is waited for
            if runs and not catalog.is_newer(table_id, runs[-1].table_id):
                continue
            runs.append(_Run(table_id, [], [], is_made_anew=bool(runs)))
        runs[-1].messages.append((record, message))
        runs[-1].arrivals.append(arrival_ms)
    return runs


class _ChunkFold:
    """The fold of one chunk."""

    def __init__(self, overlay: Overlay, catalog: TableCatalog, table_id: bytes, clock: Clock) -> None:
        self.changes: list[RowChange] = []
        self._overlay = overlay
        self._clock = clock
        digest, self._table = catalog.newest_of(table_id)
        clustering_key = clustering_encoder(self._table.clustering)
        queues, floor = Queues(overlay, clock.start_second, clock.second), SequenceFloor(overlay)
        self._tools = TableTools(
            overlay=overlay,
            codec=RowCodec(overlay, catalog, table_id),
            merger=RowMerger(_columns_by_name(self._table), is_counter=self._table.is_counter),
            imager=RowImager(self._table),
            schema=digest,
            clustering_key=clustering_key,
            bound_key=bound_encoder(self._table.clustering),
            has_clustering=bool(self._table.clustering),
            queues=queues,
            floor=floor,
        )
        stores = Stores(overlay, queues, floor)
        self._schema_change = SchemaChange(stores, catalog, SchemaId(table_id, digest), clustering_key)
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
        partition_key = mutation[0].partition_key
        self._expire(partition_key, second)
        state = self._state(partition_key, second)
        start = len(self.changes)
        for update in mutation:
            self._merge(update, second)
        if len(mutation) > 1 and len(self.changes) > start + 1:
            self.changes[start:], sequences = net_changes(self.changes[start:])
            state.renumber(
                {
                    clustering if clustering is None else self._tools.clustering_key(clustering): sequence
                    for clustering, sequence in sequences.items()
                }
            )

    def _merge(self, update: RowUpdate, second: int) -> None:
        fold = self._fold(update.partition_key, update.source, Moment(second, second))
        if update.row is not None:
            self.changes += fold.row(update.row)
        elif update.static is not None:
            self.changes += fold.static(update.static)
        elif update.range is not None:
            first, last = self._tools.bound_key(update.range.start), self._tools.bound_key(update.range.end)
            self.changes += fold.range(DeletedRange(first, last, update.range.deletion))
        else:
            self.changes += fold.partition(update.deletion)

    def expire(self) -> None:
        """Emit what else has expired by the end of the chunk."""
        for partition_key in self._tools.queues.expiring_partitions():
            self._expire(partition_key, self._clock.second)

    def follow_schema(self) -> None:
        """Emit what a changed schema changes in rows that nothing was written to, up to a bound."""
        self.changes += self._schema_change.sweep(self._clock.second)

    def purge(self, hosts: Hosts, rules: FoldRules) -> int | None:
        """Purge what may go, up to a bound. The second until which what is next has to wait for a publisher, if it does
        not wait for time.
        """
        if self._clock.second == self._clock.start_second:
            return None
        kept_for = self._table.gc_grace_seconds + rules.purge_margin_seconds
        before = hosts.purge_time() - kept_for
        for entry, data_key in self._tools.queues.purgeable(before, rules.purged_per_chunk):
            state = self._state(split_data_key(data_key)[0], self._clock.second)
            PartitionPurge(self._tools, state, before, self._clock.second).purge(data_key)
            self._overlay.put(entry, None)
        dead_since = self._tools.queues.dead_before(self._clock.second - kept_for)
        return None if dead_since is None else dead_since + kept_for

    def encode_rows(self) -> None:
        """The last step: what was changed becomes bytes, once for all the changes of a row."""
        self._tools.codec.encode_pending()

    def _expire(self, partition_key: bytes, until: int) -> None:
        """Emit what expires in a partition, second by second, as if each had been met on time."""
        for second, data_keys in self._tools.queues.expiring(partition_key, until):
            source = Source(second * 1_000_000, _NO_HOST, "", 0, "expiry")
            self.changes += self._fold(partition_key, source, Moment(second - 1, second)).expiry(data_keys)

    def _fold(self, partition_key: bytes, source: Source, moment: Moment) -> PartitionFold:
        return PartitionFold(self._tools, self._state(partition_key, moment.before), partition_key, source, moment)

    def _state(self, partition_key: bytes, second: int) -> PartitionState:
        """The partition's state, first looked at as it was at a second."""
        state = self._partitions.get(partition_key)
        if state is None:
            self.changes += self._schema_change.reach(partition_key, second)
            state = PartitionState(self._overlay, self._tools.codec, self._tools.queues, partition_key)
            self._partitions[partition_key] = state
        return state


def _mutation(timed: tuple[int, RowUpdate]) -> tuple[int, bytes, tuple[object, ...]]:
    """What two messages have in common that are of one mutation to one partition."""
    second, update = timed
    return second, update.partition_key, update.order[1:4]


def _columns_by_name(table: TableMetadata) -> dict[str, ColumnMetadata]:
    """All columns that a stored row may hold: those dropped since, too."""
    dropped = (dropped.column for dropped in table.dropped_columns.values())
    return {column.name: column for column in chain(dropped, table.static_columns, table.regular_columns)}
