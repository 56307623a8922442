"""One write, or one second's expiry, folded into one partition: which of its rows change, and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.clustering import Clustering, ClusteringBound
from cassandra_storage.deletion import RowDeletion
from cassandra_storage.merge import RowMerger
from cdc_messages.changes import RowChange, Source, change_op
from materializer.rows.budget import Budget, row_size
from materializer.rows.catalog import SchemaId
from materializer.rows.continuation import Fanout, Reach, put_unfinished
from materializer.rows.expiry import Moment
from materializer.rows.keys import RANGES_SECTION, ROWS_END, ROWS_SECTION
from materializer.rows.overlay import Overlay
from materializer.rows.partition_state import RowCodec, SequenceFloor, StoredRow
from materializer.rows.ranges import DeletedRange
from materializer.rows.row_image import RowImager
from materializer.rows.timers import Queues

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cassandra_storage.deletion import DeletionTime
    from cassandra_storage.rows import Row
    from cdc_messages.changes import ColumnImage, RowImage
    from materializer.rows.partition_state import PartitionState

_RANGES_AT_ONCE = 1000  # range tombstones that a wider one is laid over in one go


class TableTools(NamedTuple):
    """What folding into any partition of one table needs; `changes` is where they come out."""

    overlay: Overlay
    changes: list[RowChange]
    budget: Budget
    codec: RowCodec
    merger: RowMerger
    imager: RowImager
    schema: SchemaId
    clustering_key: Callable[[Clustering], bytes]
    bound_key: Callable[[ClusteringBound], bytes]
    has_clustering: bool
    queues: Queues
    floor: SequenceFloor


class Event(NamedTuple):
    """What is told of a write, or of a second's expiry; is_record as in Fanout."""

    partition_key: bytes
    source: Source
    moment: Moment
    is_record: bool = False


class PartitionFold:
    """One event in one partition. Call exactly one of its public methods, once: the changes go to the tools'.

    Whatever looks at many rows ends the chunk where the budget does: OverBudgetError or CutShortError, and then the
    state says where `resume` goes on.
    """

    def __init__(self, tools: TableTools, state: PartitionState, event: Event) -> None:
        self._tools = tools
        self._state = state
        self._event = event
        self._moment = event.moment
        self._static_before = state.static
        self._statics_before = self._static_columns(state.static, event.moment.before)
        self._statics_after = self._statics_before
        self._statics_size = row_size(state.static)
        self._visible_before = state.facts.visible_rows
        self._visible = self._visible_before
        self._first = len(tools.changes)

    def row(self, update: Row) -> None:
        """Merge a row."""
        clustering_key = self._tools.clustering_key(update.clustering)
        key = self._state.prefix + ROWS_SECTION + clustering_key
        value = self._tools.overlay.get(key)
        self._spend(value)
        stored = None if value is None else self._tools.codec.decode(value, is_static=False)
        rows = (update,) if stored is None else (stored.row, update)
        active = self._active_deletion(clustering_key)
        self._move(key, stored, self._tools.merger.merge(rows, active), active)
        self._finish()

    def static(self, update: Row) -> None:
        """Merge the static row; what it changes is a change of every row."""
        self._spend(None)
        rows = (update,) if self._state.static is None else (self._state.static, update)
        self._put_static(self._tools.merger.merge(rows, self._state.facts.deletion))
        if self._statics_before != self._statics_after:
            self._fan_out(Reach("static"), ROWS_SECTION)
        self._finish()

    def range(self, deleted: DeletedRange) -> None:
        """Delete a range of rows."""
        self._spend(None)
        if deleted.deletion.supersedes(self._state.facts.deletion):
            self._fan_out(Reach("range", *deleted), RANGES_SECTION + deleted.first)
            self._finish()

    def partition(self, deletion: DeletionTime) -> None:
        """Delete the partition, its static row included."""
        self._spend(None)
        if not deletion.supersedes(self._state.facts.deletion):
            return
        self._state.put_facts(self._state.facts._replace(deletion=deletion))
        if self._state.static is not None:
            self._put_static(self._tools.merger.merge((self._state.static,), deletion))
        self._fan_out(Reach("partition", deletion=deletion), RANGES_SECTION)
        self._finish()

    def expiry(self, data_keys: Iterable[bytes]) -> None:
        """What of these rows, or of the static row, expires between the two moments."""
        keys = set(data_keys)
        if self._state.static_key in keys:
            keys.remove(self._state.static_key)
            self._put_static(self._state.static)
        if self._statics_before != self._statics_after:
            self._fan_out(Reach("static"), ROWS_SECTION)
        else:
            for key in sorted(keys):
                value = self._tools.overlay.get(key)
                if value is not None:
                    self._move_to(key, value, None)
        self._finish()

    def resume(self, fanout: Fanout) -> None:
        """Go on with what an earlier chunk has not finished."""
        stored = fanout.static_before
        self._static_before = self._tools.codec.decode(stored, is_static=True).row if stored else None
        self._statics_before = self._static_columns(self._static_before, self._moment.before)
        self._statics_after = self._static_columns(self._state.static, self._moment.after)
        self._visible_before = fanout.visible_before
        self._fan_out(fanout.reach, fanout.at)
        self._finish()

    def _active_deletion(self, clustering_key: bytes) -> DeletionTime:
        """The deletion that is over a row from outside it."""
        deletion = self._state.facts.deletion
        ranged = self._state.ranged_deletion(clustering_key)
        return ranged if ranged.supersedes(deletion) else deletion

    def _static_columns(self, static: Row | None, now: int) -> Mapping[str, ColumnImage]:
        return {} if static is None else self._tools.imager.columns(static, now)

    def _put_static(self, merged: Row | None) -> None:
        self._state.put_static(merged, self._moment)
        self._statics_after = self._static_columns(self._state.static, self._moment.after)
        self._statics_size = max(self._statics_size, row_size(merged))

    def _spend(self, value: bytes | None) -> None:
        size = 0 if value is None else self._tools.codec.size(value)
        self._tools.budget.spend(size + self._statics_size)

    def _fan_out(self, reach: Reach, at: bytes) -> None:
        """Bring what a change reaches to what it is afterwards: from `at` (section and clustering) on."""
        if at[:1] == RANGES_SECTION:
            if reach.kind == "range":
                self._add_range(reach, at[1:])
            else:
                self._drop_ranges(reach, at[1:])
            at = ROWS_SECTION + reach.first
        end = ROWS_END if reach.last is None else ROWS_SECTION + reach.last
        prefix = self._state.prefix
        for key, value in self._tools.overlay.scan(prefix + at, prefix + end):
            self._cut_if_spent(reach, key[len(prefix) :])
            self._move_to(key, value, reach.deletion)

    def _add_range(self, reach: Reach, first: bytes) -> None:
        assert reach.deletion is not None
        assert reach.last is not None
        self._state.put_facts(self._state.facts._replace(has_ranges=True))
        while first < reach.last:
            self._cut_if_spent(reach, RANGES_SECTION + first)
            most = max(2, min(_RANGES_AT_ONCE, self._tools.budget.rows))
            first, touched = self._state.ranges.add(DeletedRange(first, reach.last, reach.deletion), most)
            self._tools.budget.spend(0, touched)

    def _drop_ranges(self, reach: Reach, first: bytes) -> None:
        """Drop those of which the partition's deletion leaves nothing."""
        assert reach.deletion is not None
        if not self._state.facts.has_ranges:
            return
        for piece in self._state.ranges.pieces(first):
            self._cut_if_spent(reach, RANGES_SECTION + piece.first)
            self._tools.budget.spend(len(piece.last))
            if not piece.deletion.supersedes(reach.deletion):
                self._state.ranges.drop(piece)
        self._state.put_facts(self._state.facts._replace(has_ranges=not self._state.ranges.is_empty))

    def _cut_if_spent(self, reach: Reach, at: bytes) -> None:
        """End the chunk in front of `at`."""
        tools = self._tools
        if not tools.budget.is_spent:
            return
        if tools.budget.can_cut:
            before = self._static_before
            stored = b"" if before is None else tools.codec.encode(StoredRow(before, 0), is_static=True)
            partition_key, source, moment, is_record = self._event
            fanout = Fanout(
                partition_key, tools.schema, reach, at, source, moment, stored, self._visible_before, is_record
            )
            put_unfinished(tools.overlay, fanout)
            if tools.has_clustering:
                self._state.put_facts(self._state.facts._replace(visible_rows=self._visible))
        tools.budget.cut()

    def _move_to(self, key: bytes, value: bytes, deletion: DeletionTime | None) -> None:
        """Move a row to what is left of it under `deletion` and the static columns of afterwards."""
        self._spend(value)
        stored = self._tools.codec.decode(value, is_static=False)
        merged = stored.row if deletion is None else self._tools.merger.merge((stored.row,), deletion)
        self._move(key, stored, merged, deletion)

    def _move(self, key: bytes, stored: StoredRow | None, merged: Row, active: DeletionTime | None) -> None:
        """Replace one row by its merged version, under the deletion that it was merged under: emit the change, if one
        is visible, and store. A row of which nothing is left keeps that deletion, and is purged with it.
        """
        before = None if stored is None else self._image(stored.row, self._moment.before, self._statics_before)
        after = self._image(merged, self._moment.after, self._statics_after)
        sequence = self._tools.floor.value if stored is None else stored.row_sequence
        if before != after:
            sequence += 1
            self._visible += (after is not None) - (before is not None)
            self._emit(merged.clustering, before, after, sequence)
        if merged.is_empty:
            if stored is None:
                return
            if active is not None:
                merged = merged._replace(deletion=RowDeletion(active))
        self._state.put_row(key, stored, StoredRow(merged, sequence), self._moment)

    def _image(self, row: Row, now: int, statics: Mapping[str, ColumnImage]) -> RowImage | None:
        columns = self._tools.imager.image(row, now)
        return {**statics, **columns} if columns is not None and statics else columns

    def _emit(
        self, clustering: Clustering | None, before: RowImage | None, after: RowImage | None, sequence: int
    ) -> None:
        op = change_op(before, after)
        key, source = self._event.partition_key, self._event.source
        digest = self._tools.schema.digest
        self._tools.changes.append(RowChange(key, clustering, op, before, after, sequence, source, digest))

    def _finish(self) -> None:
        """Account for the visible rows, and for the row that stands for a partition which has only statics."""
        if not self._tools.has_clustering:
            return
        facts = self._state.facts._replace(visible_rows=self._visible)
        before = self._statics_before if self._statics_before and not self._visible_before else None
        after = self._statics_after if self._statics_after and not self._visible else None
        if before != after:
            facts = facts._replace(static_sequence=(facts.static_sequence or self._tools.floor.value) + 1)
            self._emit(None, before, after, facts.static_sequence)
            if after is None:  # it goes before the rows come that take its place
                self._tools.changes.insert(self._first, self._tools.changes.pop())
        self._state.put_facts(facts)
