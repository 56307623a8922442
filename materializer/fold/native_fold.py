"""The native core's part of a table's fold: plain rows. See decision 0027.

The Python code folds what the core leaves. Both work on the same overlay, timers, budget and changes, so it makes no
difference which of them folds a mutation.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from cassandra_storage.formats.rows.deletion import DeletionTime
from cassandra_storage.formats.rows.row import Row
from cassandra_storage.formats.schema.tables import ColumnMetadata
from cdc_common.messages.changes import RowChange, Source
from materializer.fold.row_updates import decode_record, read_row_updates
from materializer.rows.keys import ROWS_SECTION, partition_prefix, split_data_key
from materializer.rows.native_plan import IS_NATIVE, column_entries
from materializer.rows.overlay import StoredRow
from materializer.rows.row_codec import RowCodec
from materializer.rows.row_columns import row_columns, with_dropped_columns
from materializer.rows.row_image import RowImager

if IS_NATIVE:
    from cdc_native.fold.fold import Fold
    from cdc_native.fold.updates import PlainUpdate, decode, in_write_order, mutation_end, of_new_hosts, wrap

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cassandra_storage.formats.schema.tables import TableMetadata
    from cdc_common.messages.changes import RowImage
    from cdc_native.fold.changes import EncodedChange
    from cdc_native.fold.plan import Plan
    from materializer.fold.arrivals import AnyArrival, NativeBoundary, OnUnreadable
    from materializer.fold.clock import RunClock
    from materializer.fold.tools import Event, TableTools
    from materializer.records import RawRecord, RowUpdate
    from materializer.rows.catalog import TableCatalog
    from materializer.rows.overlay import RowValue
    from materializer.rows.partition_state import PartitionState

# Why the core stops at an update: all are folded; the Python code must fold the mutation; something of its Cassandra
# partition expires before it; or a range tombstone may cover its row.
Why: TypeAlias = Literal["end", "python", "expires", "ranges"]

_ALL: bytes = b""  # the partition key of a gap of every Cassandra partition


def decode_plain(
    plan: Plan | None,
    records: Sequence[RawRecord],
    arrival_times_ms: Sequence[int],
    boundaries: tuple[list[NativeBoundary], bool] | None,
) -> Sequence[PlainUpdate | None]:
    """The records' updates, as far as the core takes them; None for the others. boundaries: see
    Truncations.native_boundaries.
    """
    if plan is None:
        return [None] * len(records)
    hosts, may_take_others = boundaries or ([], True)
    return decode(plan, list(records), list(arrival_times_ms), decode_record, hosts, may_take_others)


def publishers_of(arrivals: list[AnyArrival]) -> list[AnyArrival]:
    """The arrivals that may tell something new of a publisher."""
    return of_new_hosts(arrivals) if IS_NATIVE else arrivals


class ChangeDecoder(NamedTuple):
    """Makes a RowChange of a change that the core has encoded, by the rows that it has kept."""

    # Reads stored rows.
    codec: RowCodec
    # Makes the images of rows.
    imager: RowImager

    def row_change(self, change: EncodedChange) -> RowChange:
        before, after, clustering = None, None, None
        statics: RowImage = {}
        if change.static is not None:
            static = self.codec.decode(change.static, is_static=True).row
            statics = self.imager.columns(static, change.before_second)
        statics_after = statics
        if change.is_of_fan_out:
            stored = change.static_after
            static_after = None if stored is None else self.codec.decode(stored, is_static=True).row
            statics_after = {} if static_after is None else self.imager.columns(static_after, change.after_second)
        if change.is_alone:
            before, after = (statics, None) if change.op == "d" else (None, statics)
        else:
            if change.before is not None:
                row = self.codec.decode(change.before, is_static=False).row
                before = self._with(statics, self.imager.image(row, change.before_second))
            assert change.after is not None
            row = self.codec.decode(change.after, is_static=False).row
            after = self._with(statics_after, self.imager.image(row, change.after_second))
            clustering = row.clustering
        source = Source(*change.source)
        return RowChange(
            change.partition_key, clustering, change.op, before, after, change.row_sequence, source, change.schema
        )

    def _with(self, statics: RowImage, columns: RowImage | None) -> RowImage | None:
        return {**statics, **columns} if columns is not None else None


class ColumnReader(NamedTuple):
    """Finds the columns of stored rows in the plan."""

    # Reads the schemas to which stored rows refer.
    codec: RowCodec
    # The plan's static (True) and regular (False) columns, by name.
    places: dict[bool, dict[str, ColumnMetadata]]

    def read(self, number: int, is_static: bool) -> list[tuple[int, int | None]] | None:  # noqa: FBT001 - the core's
        """column_entries of the rows that refer to their schema by a number."""
        columns = self.codec.columns(number, is_static=is_static)
        return None if columns is None else column_entries(columns, self.places[is_static])


class RowsChange(NamedTuple):
    """The effect of a fan-out on each row: the row is deleted, or its static row changes."""

    # The deletion of all rows; None if they are not deleted.
    deletion: DeletionTime | None
    # The static row before the change.
    static_before: Row | None
    # The static row after the change.
    static_after: Row | None
    # Whether the static row looks different after the change.
    statics_differ: bool
    # The size of the static row's cells, in bytes.
    statics_size: int


class Stop(NamedTuple):
    """Where the core has stopped, and why."""

    # The index of an update, or the number of updates.
    at: int
    # The reason.
    why: Why


class Incomplete(NamedTuple):
    """The incomplete changes of a chunk."""

    # The keys of the Cassandra partitions whose changes are incomplete (the empty key stands for all). It grows while
    # the chunk is folded.
    partitions: AbstractSet[bytes]
    # The keys of Cassandra partitions with an open repair, which the core leaves to the Python code.
    repaired: AbstractSet[bytes]
    # Whether a snapshot is running, so that all changes but the snapshot's are incomplete.
    is_in_snapshot: bool


class NativeFold:
    """Folds the plain rows of one table's part of a chunk; `count` is how many updates the core has folded.

    Nothing that it refers to refers to it: its memory, with all the chunk's writes, is free when the chunk ends.

    The Python code folds the Cassandra partitions in incomplete.partitions, and marks their changes; and those in
    incomplete.repaired. The core marks its own changes in a snapshot.
    """

    def __init__(
        self,
        plan: Plan,
        tools: TableTools,
        states: dict[bytes, PartitionState],
        table: TableMetadata,
        incomplete: Incomplete,
    ) -> None:
        self.count = 0
        self._every: frozenset[bytes] = frozenset()  # all Cassandra partitions, if the Python code folds them
        self._codec = tools.codec
        self._overlay = tools.overlay
        self._clustering_key = tools.clustering_key
        self._incomplete, self._repaired = incomplete.partitions, incomplete.repaired
        stored = with_dropped_columns(table)
        self._has_statics = bool(stored.static_columns)
        columns = row_columns(table)
        places = {
            True: {column.name: columns[column.name] for column in stored.static_columns},
            False: {column.name: columns[column.name] for column in stored.regular_columns},
        }
        self._fold = Fold(
            plan,
            overlay=tools.overlay.shared(),
            timers=tools.timers.shared(),
            states=states,
            changes=tools.changes,
            budget=tools.budget,
            floor=tools.floor.value,
            number=tools.codec.newest_number(),
            is_in_snapshot=incomplete.is_in_snapshot,
            read_columns=ColumnReader(tools.codec, places).read,
            encode=tools.codec.encode_unstored,
            convert=ChangeDecoder(tools.codec, tools.imager).row_change,
        )

    def updates(
        self, arrivals: Sequence[AnyArrival], catalog: TableCatalog, on_unreadable: OnUnreadable
    ) -> list[PlainUpdate]:
        """The updates in the messages, in their order: the core's, and those of the Python code."""
        updates: list[PlainUpdate] = []
        for arrival in arrivals:
            if isinstance(arrival, PlainUpdate):
                updates.append(arrival)
                continue
            found = read_row_updates([arrival], catalog, on_unreadable)
            updates.extend(wrap(update, self._row_key(update)) for update in found)
        return updates

    def prefetch(self, updates: list[PlainUpdate], expiring: Collection[bytes]) -> None:
        """Read at once, in order, what the updates and the rows that expire will read."""
        keys = self._fold.prefetch_keys(updates, self._has_statics)
        keys.update(key for key in expiring if split_data_key(key)[1] == ROWS_SECTION)
        self._overlay.prefetch(keys)

    def fold(self, updates: list[PlainUpdate], at: int, ranged: DeletionTime | None = None) -> Stop:
        """Fold updates in write order, from the index `at` on.

        ranged: where it has stopped for "ranges", the deletion of the range tombstone that covers the row there.
        """
        if not at and _ALL in self._incomplete:
            self._every = frozenset(update.partition_key for update in updates)
        deletion = None if ranged is None else tuple(ranged)
        stop = Stop(self._fold.fold(updates, at, self._every or self._python_only(), deletion), self._fold.why)
        self.count += stop.at - at
        return stop

    def mutation(self, updates: list[PlainUpdate], at: int) -> tuple[list[PlainUpdate], bool]:
        """Return the updates that the Python code must fold of the mutation at which the core has stopped, and whether
        the rest of the mutation is done.
        """
        return updates[at : mutation_end(updates, at)], self._fold.is_begun

    def expire_rows(self, partition_key: bytes, second: int, data_keys: Sequence[bytes]) -> list[bytes]:
        """Emit what expires at a second in the rows at some keys; the keys that are left to the Python code."""
        keys = sorted(data_keys)
        static_key = any(split_data_key(key)[1] != ROWS_SECTION for key in keys)
        if static_key or self._is_python_only(partition_key):
            return keys
        return keys[self._fold.expire_rows(partition_key, second, keys) :]

    def fan_out(self, event: Event, rows: list[tuple[bytes, RowValue]], change: RowsChange) -> tuple[int, int]:
        """Update rows that something else changes: (how many are done, by how many more rows are visible)."""
        if self._is_python_only(event.partition_key):
            return 0, 0
        before, after = (
            None if static is None else self._codec.encode_unstored(StoredRow(static, 0), is_static=True)
            for static in (change.static_before, change.static_after)
        )
        return self._fold.fan_out(
            event.partition_key,
            rows,
            None if change.deletion is None else tuple(change.deletion),
            (*event.source,),
            tuple(event.now),
            (before, after, change.statics_differ),
            change.statics_size,
        )

    def _is_python_only(self, partition_key: bytes) -> bool:
        return _ALL in self._incomplete or partition_key in self._incomplete or partition_key in self._repaired

    def _python_only(self) -> AbstractSet[bytes]:
        """The Cassandra partitions now: more unreadable messages may be found while the chunk is folded."""
        return self._incomplete | self._repaired if self._repaired else self._incomplete

    @property
    def has_written(self) -> bool:
        """Whether the chunk's writes hold a row that the core has encoded."""
        return any(self._overlay.get_row(key) is not None for key in self._fold.written)

    def _row_key(self, update: RowUpdate) -> bytes | None:
        if update.row is None:
            return None
        return partition_prefix(update.partition_key) + ROWS_SECTION + self._clustering_key(update.row.clustering)


def in_order(updates: list[PlainUpdate], clock: RunClock) -> None:
    """Put updates into write order, and give each its second."""
    in_write_order(updates, clock.start_ms, clock.clock_ms)
